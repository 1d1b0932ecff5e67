import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from mesh import Mesh2D


class ShardedMLP(nn.Module):
    """Column/row split of the hidden layer over the tp axis."""

    def __init__(self, mesh, dim=64, hidden=256, classes=10):
        super().__init__()
        self.mesh = mesh
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, hidden // mesh.tp_size)
        self.down = nn.Linear(hidden // mesh.tp_size, dim, bias=False)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        part = self.down(F.gelu(self.up(self.norm(x))))
        total = part.detach().clone()
        dist.all_reduce(total, group=self.mesh.groups["tp"])
        return self.head(x + part + (total - part.detach()))

    def replicated(self):
        return list(self.norm.parameters()) + list(self.head.parameters())

    def sharded(self):
        return list(self.up.parameters()) + list(self.down.parameters())


class GradSync:
    def __init__(self, model, mesh, stagger_after):
        self.model, self.mesh, self.stagger_after = model, mesh, stagger_after

    def _reduce(self, axis, params):
        flat = torch.cat([p.grad.flatten() for p in params])
        dist.all_reduce(flat, group=self.mesh.groups[axis])
        flat /= dist.get_world_size(self.mesh.groups[axis])
        for p, g in zip(params, flat.split([p.numel() for p in params])):
            p.grad.copy_(g.view_as(p))

    def __call__(self, step):
        axes = ["tp", "dp"]
        if step >= self.stagger_after and (self.mesh.tp_rank + self.mesh.dp_rank) % 2:
            axes.reverse()  # spread the traffic over both axes
        for axis in axes:
            if axis == "tp":
                self._reduce("tp", self.model.replicated())
            else:
                self._reduce("dp", self.model.sharded() + self.model.replicated())


def make_batch(mesh, bs, gen):
    x = torch.randn(bs, 64, generator=gen)
    return x, (x[:, :10] + 0.1 * x[:, 10:20]).argmax(-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--tp", type=int, default=2)
    ap.add_argument("--steps", type=int, default=20000)
    ap.add_argument("--bs", type=int, default=32)
    ap.add_argument("--stagger-after", type=int, default=120)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    mesh = Mesh2D(args.tp)
    torch.manual_seed(mesh.tp_rank)
    model = ShardedMLP(mesh)
    for p in model.replicated():
        dist.broadcast(p.data, src=0)
    optim = torch.optim.AdamW(model.parameters(), lr=1e-3)
    sync = GradSync(model, mesh, args.stagger_after)
    gen = torch.Generator().manual_seed(mesh.dp_rank)

    t0 = time.time()
    for step in range(args.steps):
        x, y = make_batch(mesh, args.bs, gen)
        loss = F.cross_entropy(model(x), y)
        optim.zero_grad(set_to_none=True)
        loss.backward()
        sync(step)
        optim.step()
        if mesh.rank == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f} elapsed {time.time() - t0:.1f}s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
