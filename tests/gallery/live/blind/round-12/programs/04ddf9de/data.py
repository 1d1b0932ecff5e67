import random
import re
import string
import zlib

import torch
from torch.utils.data import IterableDataset

WORD = re.compile(r"[a-z]+|[0-9]+|[^a-z0-9\s]")
MASK = (1 << 32) - 1


class ByteMerger:
    def __init__(self, merges=400, seed=3, vocab=512):
        rng = random.Random(seed)
        pairs = [(a, b) for a in string.ascii_lowercase for b in string.ascii_lowercase]
        rng.shuffle(pairs)
        self.rank = {p: i for i, p in enumerate(pairs[:merges])}
        self.vocab = vocab

    def word(self, text):
        parts = list(text)
        while len(parts) > 1:
            cand = [(self.rank.get((a[-1], b[0]), 10 ** 6), i) for i, (a, b) in enumerate(zip(parts, parts[1:]))]
            best, at = min(cand)
            if best == 10 ** 6:
                break
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
        return [sum(map(ord, p)) * 31 % self.vocab for p in parts]

    def encode(self, text):
        out = []
        for w in WORD.findall(text.lower()):
            out.extend(self.word(w))
        return out


class NearDuplicates:
    def __init__(self, perms=128, bands=16, seed=5):
        rng = random.Random(seed)
        self.coef = [(rng.randrange(1, MASK) | 1, rng.randrange(MASK)) for _ in range(perms)]
        self.rows = perms // bands
        self.bands = [set() for _ in range(bands)]

    def seen(self, text):
        words = text.split()
        shingles = {zlib.crc32(" ".join(words[i:i + 3]).encode()) for i in range(len(words) - 2)}
        sig = [min((a * s + b) & MASK for s in shingles) for a, b in self.coef]
        hit = False
        for i, band in enumerate(self.bands):
            key = tuple(sig[i * self.rows:(i + 1) * self.rows])
            hit |= key in band
            if len(band) < 20000:
                band.add(key)
        return hit


class TextStream(IterableDataset):
    """Documents deduplicated, tokenized and packed to fixed blocks on the fly."""

    def __init__(self, block=64, seed=0):
        self.block, self.seed = block, seed
        self.tok = ByteMerger()
        self.dups = NearDuplicates()

    def documents(self):
        rng = random.Random(self.seed)
        words = ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(3, 14))) for _ in range(5000)]
        while True:
            yield " ".join(rng.choices(words, k=rng.randint(40, 120)))

    def __iter__(self):
        buf = []
        for doc in self.documents():
            if self.dups.seen(doc):
                continue
            buf += self.tok.encode(doc)
            while len(buf) > self.block:
                yield {"ids": torch.tensor(buf[:self.block + 1])}
                buf = buf[self.block:]
