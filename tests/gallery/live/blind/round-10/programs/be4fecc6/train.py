import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from shards import read_batches, write_shards
from tracker.client import Run

DIM, ROWS, SHARDS = 64, 640, 12


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.net = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        return x + self.net(self.norm(x))


class Classifier(nn.Module):
    def __init__(self, width=192, depth=4):
        super().__init__()
        self.inp = nn.Linear(DIM, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        x = self.inp(x)
        for b in self.blocks:
            x = b(x)
        return self.out(x)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    run = Run("runs/tracker.port", rank)
    if rank == 0:
        write_shards("runs/shards", SHARDS, ROWS, DIM)
    dist.barrier()

    mesh = init_device_mesh("cpu", (world,))
    model = Classifier()
    for b in model.blocks:
        fully_shard(b, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    start = time.time()
    for step, (x, y) in enumerate(read_batches("runs/shards", rank, world, 16)):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        run.log(step, loss=loss.item(), wall=time.time() - start)
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step >= 50_000:
            break
    run.finish()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
