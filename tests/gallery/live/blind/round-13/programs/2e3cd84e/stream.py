import random
import re
import unicodedata

import torch
from torch.utils.data import IterableDataset

SYLLABLES = [a + b for a in "bcdfghklmnprstvz" for b in ("a", "e", "i", "o", "u", "ae", "oe")]


def raw_documents(seed):
    """Stands for the crawl dump: long documents with markup, accents and stray spacing."""
    rng = random.Random(seed)
    while True:
        words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(900)]
        yield " <p> ".join("  ".join(words[i:i + 25]) for i in range(0, len(words), 25))


class Cleaner:
    patterns = [(re.compile(p), r) for p, r in [
        (r"<[^>]+>", " "), (r"[\u0300-\u036f]", ""), (r"(\w)\1{3,}", r"\1\1"), (r"\s+", " "),
        (r"(?<=[a-z])(?=[A-Z])", " "), (r"\b(\w+)(?: \1\b)+", r"\1"),
    ]]

    def __call__(self, text):
        text = unicodedata.normalize("NFKD", text)
        for pattern, repl in self.patterns:
            text = pattern.sub(repl, text)
        return text.strip().lower()

    def quality(self, text):
        grams = {}
        for i in range(len(text) - 4):
            g = text[i:i + 5]
            grams[g] = grams.get(g, 0) + 1
        return len(grams) / max(len(text), 1)


class PackedStream(IterableDataset):
    def __init__(self, tokenizer, length=64, seed=0):
        self.tokenizer, self.length, self.seed = tokenizer, length, seed
        self.clean = Cleaner()

    def __iter__(self):
        for text in raw_documents(self.seed):
            text = self.clean(text)
            if self.clean.quality(text) < 0.2:
                continue
            ids = self.tokenizer(text, truncation=True, max_length=self.length, padding="max_length")["input_ids"]
            ids = torch.tensor(ids)
            yield {"input_ids": ids, "labels": ids.clone()}
