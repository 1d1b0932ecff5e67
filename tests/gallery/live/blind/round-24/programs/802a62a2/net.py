import torch
from torch import nn
from torch.distributed.fsdp import fully_shard


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))

    def forward(self, x):
        return x + self.ff(self.norm(x))


class Regressor(nn.Module):
    def __init__(self, dim=48, depth=3):
        super().__init__()
        self.inp = nn.Linear(12, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.out = nn.Linear(dim, 3)

    def forward(self, x):
        x = self.inp(x)
        for b in self.blocks:
            x = b(x)
        return self.out(x)


def build_sharded(mesh):
    torch.manual_seed(0)
    model = Regressor()
    for b in model.blocks:
        fully_shard(b, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def make_batch(gen, step):
    x = torch.randn(32, 12, generator=gen)
    y = torch.stack([x[:, :4].sum(1), x[:, 4:8].prod(1), x[:, 8:].sin().sum(1)], 1)
    if step == 62:
        y = y * 400.0
    return x, y
