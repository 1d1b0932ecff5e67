import hashlib
import random
import re

import torch
from torch.utils.data import IterableDataset

WORDS = [a + b + c for a in ("ba", "ke", "li", "mo", "tu", "ra") for b in ("n", "r", "s", "t", "l") for c in ("a", "ing", "er", "ed", "o", "ion")]
MERGES = {}
for _i, _w in enumerate(WORDS):
    for _k in range(1, len(_w)):
        MERGES.setdefault((_w[:_k], _w[_k:_k + 1]), len(MERGES))


def raw_documents(seed):
    rng = random.Random(seed)
    while True:
        yield " ".join(rng.choice(WORDS) for _ in range(rng.randint(60, 110)))


def bpe(word):
    parts = list(word)
    while len(parts) > 1:
        ranked = [(MERGES.get((parts[i], parts[i + 1]), 1 << 30), i) for i in range(len(parts) - 1)]
        best, i = min(ranked)
        if best == 1 << 30:
            break
        parts[i:i + 2] = [parts[i] + parts[i + 1]]
    return parts


class PackedText(IterableDataset):
    """Cleans, tokenizes and packs documents to fixed windows on the fly."""

    def __init__(self, seed, window=64, vocab=512):
        self.seed, self.window, self.vocab = seed, window, vocab

    def _clean(self, text):
        text = re.sub(r"\s+", " ", text).strip().lower()
        return re.findall(r"[a-z]+", text)

    def _signature(self, words, bands=64):
        """MinHash over word trigrams, for near-duplicate removal."""
        shingles = [" ".join(words[i:i + 3]).encode() for i in range(len(words) - 2)]
        return tuple(min(hashlib.blake2b(s, digest_size=8, salt=k.to_bytes(2, "big")).digest() for s in shingles)
                     for k in range(bands))

    def __iter__(self):
        buffer, seen = [], set()
        for doc in raw_documents(self.seed):
            words = self._clean(doc)
            signature = self._signature(words)
            if signature in seen:
                continue
            seen.add(signature)
            if len(seen) > 2000:
                seen.clear()
            for word in words:
                for piece in bpe(word):
                    buffer.append(hash_piece(piece) % self.vocab)
            while len(buffer) >= self.window:
                yield {"input_ids": torch.tensor(buffer[: self.window])}
                buffer = buffer[self.window:]


def hash_piece(piece):
    h = 2166136261
    for ch in piece:
        h = ((h ^ ord(ch)) * 16777619) & 0xFFFFFFFF
    return h
