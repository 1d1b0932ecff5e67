import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from model import Net
from watch import Watcher


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--watch", choices=["none", "gradients", "all"], default="none")
    ap.add_argument("--steps", type=int, default=100000)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(0)
    model = Net()
    for b in model.blocks:
        fully_shard(b, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    watcher = Watcher(model, opt, args.watch) if rank == 0 and args.watch != "none" else None
    gen = torch.Generator().manual_seed(rank)
    w = torch.randn(64, 10, generator=torch.Generator().manual_seed(1))
    if rank == 0:
        print("training begins", flush=True)
    t0 = time.time()
    for step in range(args.steps):
        x = torch.randn(64, 64, generator=gen)
        loss = F.cross_entropy(model(x), (x @ w).argmax(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if watcher:
            watcher.record(step)
        if rank == 0 and step % 20 == 0:
            dt, t0 = time.time() - t0, time.time()
            print(f"step {step} loss {loss.item():.4f} {dt:.2f}s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
