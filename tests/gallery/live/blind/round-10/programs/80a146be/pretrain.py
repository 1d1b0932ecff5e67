import argparse
import datetime
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from ckpt import CheckpointManager


def parse():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", required=True)
    ap.add_argument("--name", default="dynamics")
    ap.add_argument("--steps", type=int, default=20000)
    ap.add_argument("--save-every", type=int, default=60)
    ap.add_argument("--lr", type=float, default=1e-3)
    args = ap.parse_args()
    args.ckpt_dir = os.path.join(args.out, f"{args.name}_{datetime.datetime.now():%Y%m%d_%H%M%S}", "checkpoints")
    return args


class MLPBlock(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        return x + self.down(F.silu(self.up(self.norm(x))))


class Dynamics(nn.Module):
    def __init__(self, obs=24, dim=96, depth=3):
        super().__init__()
        self.inp = nn.Linear(obs, dim)
        self.blocks = nn.ModuleList(MLPBlock(dim, 6 * dim) for _ in range(depth))
        self.out = nn.Linear(dim, obs)

    def forward(self, x):
        h = self.inp(x)
        for block in self.blocks:
            h = block(h)
        return x + self.out(h)


def main():
    args = parse()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world,), mesh_dim_names=("tp",))

    torch.manual_seed(0)
    model = Dynamics()
    plan = {}
    for i in range(len(model.blocks)):
        plan[f"blocks.{i}.up"] = ColwiseParallel()
        plan[f"blocks.{i}.down"] = RowwiseParallel()
    model = parallelize_module(model, mesh, plan)
    optim = torch.optim.AdamW(model.parameters(), lr=args.lr, foreach=False)
    manager = CheckpointManager(args.ckpt_dir, rank, world)

    gen = torch.Generator().manual_seed(5)
    transition = torch.linalg.qr(torch.randn(24, 24, generator=gen)).Q
    mark = time.time()
    for step in range(1, args.steps + 1):
        x = torch.randn(64, 24, generator=gen)
        y = torch.tanh(x @ transition)
        loss = F.mse_loss(model(x), y)
        optim.zero_grad()
        loss.backward()
        optim.step()
        if step % 20 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f} {20 / (time.time() - mark):.1f} it/s", flush=True)
            mark = time.time()
        if step % args.save_every == 0:
            manager.save(step, model, {"step": step, "loss": loss.item()})
            if rank == 0:
                print(f"saved step {step} under {args.ckpt_dir}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
