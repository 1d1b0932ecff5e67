import random

from datasets import Dataset

STEMS = "report claim notice invoice letter minutes contract memo".split()


def build(n=6000, seed=0):
    rng = random.Random(seed)
    texts, labels = [], []
    for _ in range(n):
        y = rng.randrange(len(STEMS))
        length = min(int(rng.lognormvariate(3.4, 0.9)) + 4, 320)
        words = [rng.choice(STEMS) if rng.random() < 0.5 else STEMS[y] for _ in range(length // 4 + 1)]
        texts.append(words)
        labels.append(y)
    return Dataset.from_dict({"words": texts, "label": labels})


def tokenize(batch):
    ids = [[1] + [2 + (hash_word(w, i) % 500) for i, w in enumerate(ws) for _ in range(4)] for ws in batch["words"]]
    return {"input_ids": ids, "length": [len(x) for x in ids]}


def hash_word(w, i):
    return sum(ord(c) * 31 for c in w) + (i % 3)


def load(rank, world):
    ds = build().map(tokenize, batched=True, remove_columns=["words"], keep_in_memory=True)
    ds = ds.sort("length", keep_in_memory=True)
    return ds.shard(num_shards=world, index=rank)
