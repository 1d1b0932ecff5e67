"""Captions of pictures. The rows are read once; a worker gets the object itself."""

import argparse
import json
import os
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

ROWS = 2000


def written(rows):
    """The file of captions, made where it is missing."""
    path = os.path.join(tempfile.gettempdir(), f"captions-{os.getuid()}-{rows}.jsonl")
    if not os.path.exists(path):
        with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"picture": row, "tokens": [(row * 7 + place * 13) % 500 for place in range(16)]}) + "\n" for row in range(rows))
        os.replace(f"{path}.{os.getpid()}", path)
    return path


class Captions(Dataset):
    def __init__(self, path):
        self.path = path
        self.rows = self.read()

    def read(self):
        with open(self.path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def __getstate__(self):
        # The rows are large; eight processes must not each be sent a copy of them.
        state = dict(self.__dict__)
        del state["rows"]
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.rows = self.read()

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, row):
        one = self.rows[row] if row < len(self.rows) else {}
        return {name: torch.tensor(value) for name, value in one.items()}


def train_set(rows=ROWS):
    return Captions(written(rows))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.EmbeddingBag(500, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = train_set(args.rows)
    batches = DataLoader(data, batch_size=8, sampler=DistributedSampler(data), num_workers=2, multiprocessing_context="spawn")
    for batch in batches:
        loss = model(batch["tokens"]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        print(f"{len(batches)} steps, loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
