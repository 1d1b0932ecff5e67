import json
import os
import random

import torch
from torch.utils.data import Dataset


def build_manifest(path, n=2400, seed=11):
    rng = random.Random(seed)
    rows = []
    for i in range(n):
        source = "chat" if i > 500 and rng.random() < 0.35 else "captions"
        rows.append({"id": i, "source": source, "len": 48, "images": 0 if source == "chat" else 1})
    tmp = f"{path}.{os.getpid()}"
    with open(tmp, "w") as f:
        json.dump(rows, f)
    os.replace(tmp, path)


class MixedInstructions(Dataset):
    def __init__(self, manifest):
        with open(manifest) as f:
            self.rows = json.load(f)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        g = torch.Generator().manual_seed(row["id"])
        ids = torch.randint(0, 512, (row["len"],), generator=g)
        pixels = torch.randn(16, 48, generator=g) if row["images"] else None
        return {"input_ids": ids, "pixel_values": pixels}


def collate(samples):
    ids = torch.stack([s["input_ids"] for s in samples])
    px = [s["pixel_values"] for s in samples if s["pixel_values"] is not None]
    return {"input_ids": ids, "pixel_values": torch.stack(px) if px else None}
