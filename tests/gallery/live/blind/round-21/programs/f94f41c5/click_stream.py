"""Click logs as a streaming dataset; each rank reads its own share of the log files."""
import random

from datasets import IterableDataset
from datasets.distributed import split_dataset_by_node

ADS = 200


def read_logs(files):
    for name in files:
        rng = random.Random(name)
        for i in range(100000):
            ad = rng.randrange(ADS)
            fields = {"uid": rng.randrange(5000), "ad": ad, "hour": rng.randrange(24),
                      "click": int(rng.random() < 0.05 + ad / 1000)}
            if name.endswith("0007") and i % 300 == 299:
                fields.pop("hour")
            yield {"line": "\t".join(f"{k}={v}" for k, v in fields.items())}


def parse(row):
    out = dict(part.split("=") for part in row["line"].split("\t"))
    return {k: int(v) for k, v in out.items()}


def click_batches(rank, world_size, batch_size):
    files = [f"clicks-{i:04d}" for i in range(world_size * 4)]
    ds = IterableDataset.from_generator(read_logs, gen_kwargs={"files": files})
    ds = split_dataset_by_node(ds, rank=rank, world_size=world_size)
    ds = ds.shuffle(seed=3, buffer_size=64)
    batch = []
    for row in ds:
        batch.append(parse(row))
        if len(batch) == batch_size:
            yield batch
            batch = []
