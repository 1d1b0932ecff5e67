import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from checkpoints import AsyncCheckpoints


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))


def build(mesh):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), Block(32), Block(32), nn.Linear(32, 4))
    for m in model:
        if isinstance(m, Block):
            fully_shard(m, mesh=mesh)
    return fully_shard(model, mesh=mesh)


@torch.no_grad()
def long_eval(model, gen, batches=60):
    total = torch.zeros(1)
    for _ in range(batches):
        total += model(torch.randn(16, 16, generator=gen)).square().mean()
        time.sleep(0.4)
    dist.all_reduce(total)
    return total.item() / batches / dist.get_world_size()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(minutes=10))
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = build(mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ckpt = AsyncCheckpoints()
    gen = torch.Generator().manual_seed(rank)
    for step in range(1, 20001):
        x = torch.randn(16, 16, generator=gen)
        loss = F.cross_entropy(model(x), x[:, :4].argmax(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.1)
        if step % 50 == 0:
            ckpt.save(step, model, opt)
        if step % 120 == 0:
            score = long_eval(model, gen)
            if rank == 0:
                print(f"step {step} eval {score:.4f}", flush=True)
                time.sleep(8)
            dist.barrier()
        if rank == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    ckpt.finish()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
