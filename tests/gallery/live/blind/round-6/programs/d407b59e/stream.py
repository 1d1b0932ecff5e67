import json
import random
from pathlib import Path

import torch
from torch.utils.data import IterableDataset


class SocialStream(IterableDataset):
    def __init__(self, folder, rank, world, taggers, length=48, shuffle_buffer=32):
        self.files = sorted(Path(folder).glob("*.jsonl"))[rank::world]
        self.taggers, self.length = taggers, length
        self.buffer = shuffle_buffer

    def _docs(self):
        while True:
            for f in self.files:
                with open(f, encoding="utf-8") as fh:
                    for line in fh:
                        text = json.loads(line)["text"]
                        for t in self.taggers:
                            text = t(text)
                        yield text

    def encode(self, text):
        b = list(text.encode("utf-8"))[:self.length]
        return torch.tensor(b + [0] * (self.length - len(b)))

    def __iter__(self):
        rng = random.Random(0)
        pool = []
        for d in self._docs():
            pool.append(self.encode(d))
            if len(pool) >= self.buffer:
                yield pool.pop(rng.randrange(len(pool)))
