import torch


class SpiralSequences:
    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)

    def batch(self, n, t=48):
        phase = torch.rand(n, 1, generator=self.g) * 6.28
        ts = torch.linspace(0, 12, t)[None] + phase
        r = torch.linspace(0.2, 1, t)[None]
        xy = torch.stack([r * ts.cos(), r * ts.sin()], -1)
        return xy[:, :-1], xy[:, 1:]
