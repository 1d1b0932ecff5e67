import torch
from torch import nn
import torch.distributed as dist
import torch.distributed.nn.functional as df


class CrossNorm(nn.Module):
    """batch norm with statistics of the whole job (cpu port of the sync one)"""
    group = None

    def __init__(self, c):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.ones(c)), nn.Parameter(torch.zeros(c))

    def forward(self, x):
        s = torch.stack([x.mean((0, 2, 3)), (x * x).mean((0, 2, 3))])
        if self.training:
            s = df.all_reduce(s, group=CrossNorm.group) / dist.get_world_size()
        mean, sq = s[0], s[1]
        inv = (sq - mean * mean + 1e-5).rsqrt()
        return (x - mean[:, None, None]) * (inv * self.w)[:, None, None] + self.b[:, None, None]
