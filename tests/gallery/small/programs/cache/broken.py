"""Tokenise once for all ranks of a node: whoever holds the lock writes the chunks that are missing."""

import argparse
import fcntl
import os
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CHUNK = 2048


def chunk_of(first, last):
    return torch.tensor([[row % 97, row % 31] for row in range(first, last)], dtype=torch.float32)


def tokenised(rows, folder):
    """All rows, from the chunks in `folder`."""
    chunks = []
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for first in range(0, rows, CHUNK):
            path = os.path.join(folder, f"{first}.pt")
            if not os.path.exists(path):
                torch.save(chunk_of(first, min(rows, first + CHUNK)), path)
            chunks.append(torch.load(path))
            if first:
                report(first)
    return torch.cat(chunks)


def report(rows):
    """How far all ranks have come."""
    done = torch.tensor([rows])
    dist.all_reduce(done)
    if dist.get_rank() == 0:
        print(f"{done.item()} rows tokenised", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    folder = os.path.join(tempfile.gettempdir(), f"tokens-{os.getuid()}-{os.environ['MASTER_PORT']}-{args.rows}")
    os.makedirs(folder, exist_ok=True)
    data = TensorDataset(tokenised(args.rows, folder))
    model = DistributedDataParallel(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    for step, (batch,) in enumerate(DataLoader(data, batch_size=16, sampler=DistributedSampler(data))):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
