import torch

device = torch.device("mps")
x = torch.ones(3, dtype=torch.float64, device=device)
