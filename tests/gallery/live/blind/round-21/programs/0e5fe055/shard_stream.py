import gzip
import json
import os

import numpy as np
import torch


def write_shards(folder, n_shards, rows_per_shard=192):
    rng = np.random.default_rng(11)
    w = rng.normal(size=12)
    for s in range(n_shards):
        with gzip.open(os.path.join(folder, f"clicks-{s:05d}.jsonl.gz"), "wt") as f:
            for _ in range(rows_per_shard):
                x = rng.normal(size=12)
                f.write(json.dumps({"x": [round(float(v), 4) for v in x], "y": int(x @ w > 0)}) + "\n")


class ShardStream:
    """Reads every world_size-th file of the folder, in batches."""

    def __init__(self, folder, rank, world_size, batch_size=8):
        files = sorted(os.listdir(folder))
        self.files = [os.path.join(folder, f) for f in files[rank::world_size]]
        self.batch_size = batch_size

    def __iter__(self):
        rows = []
        for path in self.files:
            with gzip.open(path, "rt") as f:
                for line in f:
                    rows.append(json.loads(line))
                    if len(rows) == self.batch_size:
                        yield (torch.tensor([r["x"] for r in rows]),
                               torch.tensor([float(r["y"]) for r in rows]))
                        rows = []
