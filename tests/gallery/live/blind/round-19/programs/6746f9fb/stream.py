import random

from datasets import Features, IterableDataset, Sequence, Value
from datasets.distributed import split_dataset_by_node

VOCAB = 800


def read_parts(parts, base):
    for part in parts:
        rng = random.Random(part)
        for _ in range(base + rng.randrange(40)):
            n = rng.randrange(20, 60)
            query = [rng.randrange(1, VOCAB) for _ in range(8)]
            doc = query[: rng.randrange(2, 8)] + [rng.randrange(1, VOCAB) for _ in range(n)]
            yield {"query": query, "doc": doc, "grade": float(len(set(query) & set(doc)))}


def pairs(parts, base, rank, world, epoch=0, shuffle=True):
    ids = Sequence(Value("int64"))
    features = Features({"query": ids, "doc": ids, "grade": Value("float32")})
    data = IterableDataset.from_generator(read_parts, features=features, gen_kwargs={"parts": parts, "base": base})
    if shuffle:
        data = data.shuffle(seed=13, buffer_size=256)
        data.set_epoch(epoch)
    data = split_dataset_by_node(data, rank=rank, world_size=world)
    return data.filter(lambda row: row["grade"] > 1)
