import random

from datasets import Dataset

WORDS = ["tide", "harbour", "lantern", "rivers", "carry", "the", "northern", "of", "stone", "walked", "under",
         "bridge", "morning", "a", "kept", "every", "letter", "window", "quiet", "road", "and", "machine"]


def build(n, seed):
    rng = random.Random(seed)
    return Dataset.from_dict({"text": [" ".join(rng.choices(WORDS, k=rng.randint(12, 40))) for _ in range(n)]})


def encode(rows):
    table = {w: i + 1 for i, w in enumerate(WORDS)}
    return {"input_ids": [[table[w] for w in t.split()] for t in rows["text"]]}
