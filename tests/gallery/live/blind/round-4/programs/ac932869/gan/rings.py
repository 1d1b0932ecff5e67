import math

import torch


def rings(n, it, rank):
    g = torch.Generator().manual_seed(it * 8 + rank)
    a = torch.rand(n, generator=g) * 2 * math.pi
    r = torch.randint(1, 4, (n,), generator=g).float()
    return torch.stack([r * a.cos(), r * a.sin()], -1)
