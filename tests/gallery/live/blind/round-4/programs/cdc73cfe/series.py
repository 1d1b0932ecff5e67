import torch


class Windows:
    def __init__(self, rank, context, horizon, batch=32):
        self.g = torch.Generator().manual_seed(rank)
        self.c, self.h, self.b = context, horizon, batch

    def __iter__(self):
        while True:
            ph = torch.rand(self.b, 1, generator=self.g) * 6.28
            t = torch.arange(self.c + self.h)[None] * 0.13
            s = (t + ph).sin() + 0.05 * torch.randn(self.b, self.c + self.h, generator=self.g)
            yield s[:, :self.c], s[:, self.c:]
