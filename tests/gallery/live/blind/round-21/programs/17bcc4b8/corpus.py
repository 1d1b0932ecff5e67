import random

DOMAINS = ("web", "books", "code")


def build_index(total=3600, seed=13):
    rng = random.Random(seed)
    curated = int(total * 0.79)
    index = [(i, rng.choice(DOMAINS)) for i in range(curated)]
    index += [(i, rng.choice(("web", "books"))) for i in range(curated, total)]
    return index


def shard(rank, world, batch=12):
    index = build_index()
    per = len(index) // world
    part = index[rank * per:(rank + 1) * per]
    for start in range(0, len(part) - batch + 1, batch):
        yield part[start:start + batch]
