import random

from datasets import Dataset

TOPICS = ["sport ball team goal match", "bank rate loan stock bond", "rain wind storm cloud heat",
          "song band tune drum choir", "chip disk code byte cache", "soup bread salt spice oven"]


def build(n, seed):
    rng = random.Random(seed)
    pool = [t.split() for t in TOPICS]
    filler = [f"w{i}" for i in range(300)]
    rows = {"text": [], "label": []}
    for _ in range(n):
        c = rng.randrange(6)
        k = rng.randint(10, 60)
        rows["text"].append(" ".join(rng.choice(pool[c]) if rng.random() < 0.2 else rng.choice(filler) for _ in range(k)))
        rows["label"].append(c)
    return Dataset.from_dict(rows)


def vocabulary():
    words = sorted({w for t in TOPICS for w in t.split()} | {f"w{i}" for i in range(300)})
    return {w: i + 2 for i, w in enumerate(words)}
