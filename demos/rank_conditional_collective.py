"""Rank 0 saves a checkpoint every eight steps."""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def save_checkpoint(model, step):
    torch.save(model.module.state_dict(), f"checkpoint-{step}.pt")
    dist.barrier()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DistributedDataParallel(nn.Linear(64, 8))
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(1, 100_000):
        loss = model(torch.randn(16, 64)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step % 8 == 0 and rank == 0:
            save_checkpoint(model, step)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
