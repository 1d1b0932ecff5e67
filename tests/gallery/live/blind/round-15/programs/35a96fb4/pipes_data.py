import glob
import json
import os
import random

import torch
from torch.utils.data import IterDataPipe


class ListShards(IterDataPipe):
    def __init__(self, folder, rank, world):
        self.files = sorted(glob.glob(os.path.join(folder, "part-*.jsonl")))[rank::world]

    def __iter__(self):
        yield from self.files


class ReadRows(IterDataPipe):
    def __init__(self, source):
        self.source = source

    def __iter__(self):
        for path in self.source:
            with open(path) as f:
                for line in f:
                    yield json.loads(line)


class ShuffleRows(IterDataPipe):
    def __init__(self, source, size=256):
        self.source, self.size, self.rng = source, size, random.Random()

    def __iter__(self):
        buf = []
        for row in self.source:
            if len(buf) < self.size:
                buf.append(row)
                continue
            i = self.rng.randrange(self.size)
            yield buf[i]
            buf[i] = row
        self.rng.shuffle(buf)
        yield from buf


def collate(rows):
    return (torch.tensor([r["user"] for r in rows]),
            torch.tensor([r["items"] for r in rows]),
            torch.tensor([float(r["label"]) for r in rows]))


def build(folder, rank, world):
    return ShuffleRows(ReadRows(ListShards(folder, rank, world)))
