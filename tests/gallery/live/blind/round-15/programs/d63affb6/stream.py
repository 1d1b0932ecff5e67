import json
import os
import random
import re
import unicodedata

import torch
from torch.utils.data import IterableDataset

WORDS = [a + b + c for a in ("ka", "lo", "mi", "ter", "sun", "ver") for b in ("ra", "ne", "dol", "vi")
         for c in ("s", "n", "", "ta", "ing")]


def write_corpus(folder, files=6, docs=400, seed=0):
    rng = random.Random(seed)
    for i in range(files):
        with open(os.path.join(folder, f"part{i}.jsonl"), "w") as f:
            for _ in range(docs):
                words = rng.choices(WORDS, k=rng.randint(800, 1000))
                f.write(json.dumps({"text": " ".join(words)}) + "\n")


class Bpe:
    """Character merges, learned once from a sample."""

    def __init__(self, sample, merges=120):
        self.ranks, self.vocab = {}, {c: i for i, c in enumerate("\x00abcdefghijklmnopqrstuvwxyz ")}
        words = [list(w) for w in sample]
        for rank in range(merges):
            counts = {}
            for w in words:
                for p in zip(w, w[1:]):
                    counts[p] = counts.get(p, 0) + 1
            if not counts:
                break
            best = max(counts, key=counts.get)
            self.ranks[best] = rank
            self.vocab["".join(best)] = len(self.vocab)
            words = [self._merge(w, best) for w in words]

    @staticmethod
    def _merge(word, pair):
        out, i = [], 0
        while i < len(word):
            if i + 1 < len(word) and (word[i], word[i + 1]) == pair:
                out.append(word[i] + word[i + 1])
                i += 2
            else:
                out.append(word[i])
                i += 1
        return out

    def encode_word(self, word):
        parts = list(word)
        while len(parts) > 1:
            pair = min(zip(parts, parts[1:]), key=lambda p: self.ranks.get(p, 1 << 30))
            if pair not in self.ranks:
                break
            parts = self._merge(parts, pair)
        return [self.vocab[p] for p in parts]

    def encode(self, text):
        text = re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text).lower())
        ids = []
        for w in text.split(" "):
            ids.extend(self.encode_word(w))
        return ids


class TextStream(IterableDataset):
    def __init__(self, folder, bpe, length):
        self.folder, self.bpe, self.length = folder, bpe, length

    def __iter__(self):
        while True:
            for name in sorted(os.listdir(self.folder)):
                with open(os.path.join(self.folder, name)) as f:
                    for line in f:
                        ids = self.bpe.encode(json.loads(line)["text"])[: self.length + 1]
                        yield {"input_ids": torch.tensor(ids)}
