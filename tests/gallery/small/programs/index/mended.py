"""An index of documents: for each one its tokens, its neighbours and where it came from."""

import argparse
import os
import tempfile

import numpy
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


def written(rows, wide):
    """The file of all documents, made where it is missing: `wide` numbers for each."""
    path = os.path.join(tempfile.gettempdir(), f"documents-{os.getuid()}-{rows}-{wide}.npy")
    if not os.path.exists(path):
        table = numpy.lib.format.open_memmap(f"{path}.{os.getpid()}", mode="w+", dtype=numpy.int32, shape=(rows, wide))
        for first in range(0, rows, 4096):
            table[first : first + 4096] = numpy.arange(first, min(rows, first + 4096))[:, None] + numpy.arange(wide)
        table.flush()
        os.replace(f"{path}.{os.getpid()}", path)
    return path


class Documents(Dataset):
    def __init__(self, rows):
        self.path = written(rows, 64)
        self.rows = numpy.load(self.path, mmap_mode="r")

    def __getstate__(self):
        return self.path

    def __setstate__(self, path):
        self.path, self.rows = path, numpy.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, row):
        one = torch.from_numpy(self.rows[row].astype(numpy.int64))
        return {"tokens": one[:48] % 500, "neighbours": one[48:]}


def train_set(rows=20_000):
    return Documents(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    data = train_set(args.rows)
    model = DistributedDataParallel(torch.nn.EmbeddingBag(500, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, batch in enumerate(DataLoader(data, batch_size=32, sampler=DistributedSampler(data), num_workers=2)):
        loss = model(batch["tokens"]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
