import json
import os

import numpy as np
import torch


def write_shards(folder, n_shards, rows, dim, seed=0):
    """Sensor rows as JSON lines, in the layout of the exporter."""
    rng = np.random.default_rng(seed)
    os.makedirs(folder, exist_ok=True)
    for s in range(n_shards):
        x = rng.standard_normal((rows, dim)).round(4)
        y = (x[:, ::2].sum(1) > 0).astype(int)
        with open(os.path.join(folder, f"part-{s:03d}.jsonl"), "w") as f:
            for k in range(rows):
                values = x[k].tolist()
                if s == 1 and k == 345:
                    values[3] = ""
                f.write(json.dumps({"x": values, "y": int(y[k])}) + "\n")


def read_batches(folder, rank, world, batch):
    files = sorted(os.listdir(folder))
    while True:
        for name in files[rank::world]:
            with open(os.path.join(folder, name)) as f:
                rows = [json.loads(line) for line in f]
            for k in range(0, len(rows) - batch + 1, batch):
                part = rows[k : k + batch]
                yield torch.tensor([r["x"] for r in part], dtype=torch.float), torch.tensor([r["y"] for r in part])
