"""Loader workers read samples from a stream that a feeder writes."""

import os
import threading
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __init__(self, path):
        self.path = path

    def __iter__(self):
        with open(self.path, "rb") as source:
            while record := source.read(256):
                yield torch.frombuffer(bytearray(record), dtype=torch.float32)


def feed(path, records):
    with open(path, "wb", buffering=0) as sink:
        sink.writelines(torch.rand(64).numpy().tobytes() for _ in range(records))
        time.sleep(100_000)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    path = f"samples-{rank}.fifo"
    os.mkfifo(path)
    records = 64 if rank == 1 else 10_000_000
    threading.Thread(target=feed, args=(path, records), daemon=True).start()
    model = DistributedDataParallel(nn.Linear(64, 8))
    optimizer = torch.optim.AdamW(model.parameters())
    for step, batch in enumerate(DataLoader(Stream(path), batch_size=8, num_workers=1)):
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
