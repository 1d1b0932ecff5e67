import argparse
import json
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.fsdp import fully_shard


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, dim * 4)
        self.down = nn.Linear(dim * 4, dim)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Regressor(nn.Module):
    def __init__(self, dim=96, depth=3):
        super().__init__()
        self.inp = nn.Linear(32, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.out = nn.Linear(dim, 8)

    def forward(self, x):
        x = self.inp(x)
        for block in self.blocks:
            x = block(x)
        return self.out(x)


class JsonLogger:
    def __init__(self, rank):
        self.rank = rank

    def log(self, **fields):
        print(json.dumps({"rank": self.rank, "time": time.time(), **fields}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logger = JsonLogger(rank)
    torch.manual_seed(0)
    model = Regressor()
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    teacher = torch.randn(32, 8)
    gen = torch.Generator().manual_seed(rank)

    running = None
    for step in range(1, args.steps + 1):
        t0 = time.time()
        x = torch.randn(args.batch_size, 32, generator=gen)
        loss = F.mse_loss(model(x), torch.tanh(x @ teacher))
        loss.backward()
        grad_norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0).full_tensor()
        optimizer.step()
        local = {n: p for n, p in model.named_parameters()}
        norms = {n: round(p.to_local().norm().item(), 4) for n, p in local.items()}
        grads = {n: round(p.grad.to_local().norm().item(), 6) for n, p in local.items()}
        optimizer.zero_grad()
        running = loss.item() if running is None else 0.98 * running + 0.02 * loss.item()
        if rank == 0:
            logger.log(step=step, loss=loss.item(), grad_norm=grad_norm.item(), lr=args.lr,
                       step_time=time.time() - t0, samples=step * args.batch_size * dist.get_world_size(),
                       param_norms=norms, grad_norms=grads)
    if rank == 0:
        with open(os.path.join(args.output, "result.json"), "w") as f:
            json.dump({"loss": running, "steps": args.steps}, f)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
