import torch.nn as nn

OBS = 12


def make_policy():
    return nn.Sequential(nn.Linear(OBS, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))
