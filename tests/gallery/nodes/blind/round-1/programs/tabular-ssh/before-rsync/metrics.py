"""Means over all ranks."""
import torch
import torch.distributed as dist


class Running:
    def __init__(self):
        self.losses, self.hits = [], []

    def add(self, loss, hit):
        self.losses.append(loss)
        self.hits.append(hit)

    def report(self):
        both = torch.tensor([sum(self.losses), sum(self.hits)]) / len(self.losses)
        dist.all_reduce(both)
        both /= dist.get_world_size()
        self.losses, self.hits = [], []
        return f"loss={both[0]:.4f} acc={both[1]:.4f}"
