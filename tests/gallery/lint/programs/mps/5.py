import torch
from torch import float64 as f64


def pick():
    return torch.device("mps")


dev = pick()
w = torch.zeros(4).to(dev, f64)
