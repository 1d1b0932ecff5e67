"""Synthetic click logs, one stream per rank; label -100 marks unjudged rows."""
import torch

IGNORE = -100


class ClickStream:
    def __init__(self, rank, rows_per_batch=12, judged=0.8):
        self.gen = torch.Generator().manual_seed(41 + rank)
        self.rank = rank
        self.n = rows_per_batch
        self.judged = judged if rank != 2 else 0.3

    def batch(self):
        x = torch.randn(self.n, 20, generator=self.gen)
        y = torch.randint(0, 4, (self.n,), generator=self.gen)
        keep = torch.rand(self.n, generator=self.gen) < self.judged
        return x, torch.where(keep, y, torch.full_like(y, IGNORE))
