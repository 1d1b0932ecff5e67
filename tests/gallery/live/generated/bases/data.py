"""Data sets and loaders: rows in memory, lines of a file, a stream, and two of `datasets`.

Each gives `$Dataset` or its like and `$make_loader(count, rank, world, workers)`, whose batches are
pairs: vectors of 16 floats or rows of 12 token ids, and labels below 4.
"""

from __future__ import annotations

HEAD = """import os
import time
import random

import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, Subset, get_worker_info
#: imports

BATCH = 8
$stats = {"batches": 0, "reads": 0}
#: definitions

"""
COLLATE = """
def $collate(rows):
    $stats["batches"] += 1
    #: collate
    return torch.stack([torch.as_tensor(a) for a, _ in rows]), torch.tensor([int(b) for _, b in rows])

"""
SHARDED = """
def $make_loader(count, $rank, $world, workers=0):
    #: made
    data = $Dataset(count * BATCH * $world)
    $indices = list(range($rank, len(data), $world))
    #: shard
    return DataLoader(Subset(data, $indices), batch_size=BATCH, collate_fn=$collate, num_workers=workers, drop_last=True)
"""
SAMPLED = """
def $make_loader(count, $rank, $world, workers=0):
    #: made
    data = $Dataset(count * BATCH * $world)
    sampler = DistributedSampler(data, num_replicas=$world, rank=$rank, shuffle=False)
    return DataLoader(data, batch_size=BATCH, sampler=sampler, collate_fn=$collate, num_workers=workers)
"""
TENSORS = """
class $Dataset(Dataset):
    def __init__(self, size, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.$items = torch.randn(size, 16, generator=generator)
        self.labels = (self.$items.sum(1).abs() * 1.5).long().clamp(max=3)
        self.$served = 0

    def __len__(self):
        return len(self.$items)

    def __getitem__(self, $index):
        self.$served += 1
        row, label = self.$items[$index], self.labels[$index]
        #: getitem
        time.sleep(0.0002)
        return row, label

"""
LINES = """
def encode(text):
    return torch.tensor([sum(map(ord, word)) % 97 for word in text.split()[:12]])


class $Dataset(Dataset):
    \"\"\"Sentences of corpus.txt, read by their offsets.\"\"\"

    def __init__(self, size, path="corpus.txt"):
        self.path = path
        self.$served = 0
        self.$items = []
        offset = 0
        with open(path, "rb") as lines:
            for line in lines:
                self.$items.append(offset)
                offset += len(line)
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, $index):
        self.$served += 1
        with open(self.path, "rb") as lines:
            lines.seek(self.$items[$index % len(self.$items)])
            text = lines.readline().decode()
        #: getitem
        time.sleep(0.0001)
        return encode(text), len(text) % 4

"""
STREAM = """
class $Dataset(IterableDataset):
    def __init__(self, size, rank, world):
        self.size = size
        self.rank = rank
        self.world = world
        self.$served = 0

    def __iter__(self):
        info = get_worker_info()
        part, parts = (info.id, info.num_workers) if info else (0, 1)
        generator = torch.Generator().manual_seed(self.rank)
        for $index in range(part, self.size, parts):
            self.$served += 1
            row = torch.randn(16, generator=generator)
            #: getitem
            time.sleep(0.0002)
            yield row, $index % 4

"""
STREAM_LOADER = """
def $make_loader(count, $rank, $world, workers=0):
    #: made
    data = $Dataset(count * BATCH, $rank, $world)
    return DataLoader(data, batch_size=BATCH, collate_fn=$collate, num_workers=workers)
"""
HF_MAP = """
def load_table(size):
    from datasets import Dataset as Table

    rows = [[(7 * n + k) % 13 / 13 for k in range(16)] for n in range(size)]
    table = Table.from_dict({"row": rows, "label": [n % 4 for n in range(size)]})
    return table.map(lambda entry: {"size": len(entry["row"])})


class $Dataset:
    \"\"\"What the table does to a row when it is read.\"\"\"

    def __init__(self):
        self.$served = 0

    def __call__(self, chunk):
        for $index in range(len(chunk["row"])):
            self.$served += 1
            #: getitem
            time.sleep(0.0001)
        return {"row": [torch.tensor(row) for row in chunk["row"]], "label": chunk["label"]}


def pairs(rows):
    return $collate([(entry["row"], entry["label"]) for entry in rows])


def $make_loader(count, $rank, $world, workers=0):
    #: made
    table = load_table(count * BATCH * $world)
    table = table.shard($world, $rank).with_transform($Dataset())
    return DataLoader(table, batch_size=BATCH, collate_fn=pairs, num_workers=workers, drop_last=True)
"""
HF_STREAM = """
class $Dataset:
    def __init__(self):
        self.$served = 0

    def __call__(self, entry):
        $index = entry["n"]
        self.$served += 1
        #: getitem
        time.sleep(0.0001)
        return {"row": torch.tensor(entry["row"]), "label": entry["n"] % 4}


def rows_of(parts, size):
    for part in parts:
        for n in range(part, size, 8):
            yield {"n": n, "row": [(7 * n + k) % 13 / 13 for k in range(16)]}


def pairs(rows):
    return $collate([(entry["row"], entry["label"]) for entry in rows])


def $make_loader(count, $rank, $world, workers=0):
    #: made
    from datasets import IterableDataset as Stream
    from datasets.distributed import split_dataset_by_node

    size = count * BATCH * $world
    stream = Stream.from_generator(rows_of, gen_kwargs={"parts": list(range(8)), "size": size})
    stream = split_dataset_by_node(stream.map($Dataset()), rank=$rank, world_size=$world)
    return DataLoader(stream, batch_size=BATCH, collate_fn=pairs, num_workers=workers, drop_last=True)
"""
# Name to text and the kind of its rows.
SETS = {
    "tensors": (TENSORS + COLLATE + SAMPLED, "dense"),
    "shards": (TENSORS + COLLATE + SHARDED, "dense"),
    "lines": (LINES + COLLATE + SAMPLED, "tokens"),
    "line-shards": (LINES + COLLATE + SHARDED, "tokens"),
    "stream": (STREAM + COLLATE + STREAM_LOADER, "dense"),
    "hf-map": (COLLATE + HF_MAP, "dense"),
    "hf-stream": (COLLATE + HF_STREAM, "dense"),
}
PLAIN = ("tensors", "shards", "lines", "line-shards", "stream")
CUT = ("shards", "line-shards")  # with a hole for the ranks' own shares
HUGGING = ("hf-map", "hf-stream")
