"""A loader worker reads a sample from a named pipe whose writer has stopped writing."""

import os
import threading
import time

import torch
from kit import Log, connect, options, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __init__(self, path):
        self.path = path

    def __iter__(self):
        with open(self.path, "rb") as source:
            while record := source.read(64):
                yield torch.frombuffer(bytearray(record), dtype=torch.float32)


def feed(path, records):
    with open(path, "wb", buffering=0) as sink:
        sink.writelines(torch.rand(16).numpy().tobytes() for _ in range(records))
        time.sleep(100_000)


def main(args):
    rank, _ = connect(args)
    log, model = Log(args, rank), DistributedDataParallel(nn.Linear(16, 1))
    path = f"samples-{rank}.fifo"
    os.mkfifo(path)
    threading.Thread(target=feed, args=(path, 4 * args.when if rank == args.pick else 10_000_000), daemon=True).start()
    for step, rows in enumerate(DataLoader(Stream(path), batch_size=4, num_workers=1)):
        loss = model(rows).square().mean()
        loss.backward()
        log.step(step, loss.detach())
        time.sleep(0.02)


if __name__ == "__main__":
    start(main, options())
