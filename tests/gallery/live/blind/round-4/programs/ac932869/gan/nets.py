import torch.nn as nn


def mlp(i, o, h=128):
    return nn.Sequential(nn.Linear(i, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, o))


class G(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = mlp(16, 2)

    def forward(self, z):
        return self.m(z)


class D(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = mlp(2, 1)

    def forward(self, x):
        return self.m(x)
