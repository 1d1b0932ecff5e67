"""Rank 0 tokenises the data set alone while the others wait for it."""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def tokenize(text):
    return [sum(ord(letter) for letter in word) % 997 for word in text.split()]


def build_dataset(rows):
    text = " ".join(f"word{number}" for number in range(2000))
    return [tokenize(text) for _ in range(rows)]


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DistributedDataParallel(nn.Linear(64, 8))
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(8):
        loss = model(torch.randn(16, 64)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        time.sleep(0.05)
    if rank == 0:
        print("building the data set of the next stage", flush=True)
        build_dataset(rows=1_000_000)
    dist.barrier()


if __name__ == "__main__":
    main()
