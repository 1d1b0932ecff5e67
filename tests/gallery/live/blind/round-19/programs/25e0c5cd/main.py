import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from checkpoint import ShardWriter
from dist_utils import extended_timeout


class Residual(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up, self.down = nn.Linear(dim, 3 * dim), nn.Linear(3 * dim, dim)

    def forward(self, x):
        return x + self.down(F.silu(self.up(self.norm(x))))


class Tabular(nn.Module):
    def __init__(self, features=64, dim=160, depth=4):
        super().__init__()
        self.stem = nn.Linear(features, dim)
        self.body = nn.ModuleList(Residual(dim) for _ in range(depth))
        self.head = nn.Linear(dim, 1)

    def forward(self, x):
        x = self.stem(x)
        for block in self.body:
            x = block(x)
        return self.head(x)


def batches(rank, size=64, features=64):
    gen = torch.Generator().manual_seed(500 + rank)
    weight = torch.randn(features, generator=torch.Generator().manual_seed(1))
    while True:
        x = torch.randn(size, features, generator=gen)
        yield x, torch.tanh(x @ weight * 0.2)


@torch.no_grad()
def evaluate(model, held_out):
    with extended_timeout(list(range(dist.get_world_size()))) as group:
        total = torch.zeros(2)
        for x, y in held_out:
            total += torch.tensor([F.mse_loss(model(x).squeeze(-1), y).item(), 1.0])
        dist.all_reduce(total, group=group)
    return (total[0] / total[1]).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    parser.add_argument("--save-every", type=int, default=500)
    parser.add_argument("--eval-every", type=int, default=250)
    parser.add_argument("--steps", type=int, default=20000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))

    torch.manual_seed(3)
    model = Tabular()
    for block in model.body:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    writer = ShardWriter(mesh, args.output)
    data = batches(rank)
    held_out = [b for b, _ in zip(batches(1000 + rank), range(6))]

    mark = time.time()
    for step in range(1, args.steps + 1):
        x, y = next(data)
        loss = F.mse_loss(model(x).squeeze(-1), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 10 == 0:
            total = loss.detach().clone()
            dist.all_reduce(total)
            if rank == 0:
                print(f"step {step} loss {total.item() / dist.get_world_size():.4f} {time.time() - mark:.2f}s", flush=True)
            mark = time.time()
        if step % args.eval_every == 0:
            score = evaluate(model, held_out)
            if rank == 0:
                print(f"step {step} held-out {score:.4f}", flush=True)
        if step % args.save_every == 0:
            writer.save(step, model, optimizer)

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
