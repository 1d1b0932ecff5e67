import random

import torch
from torch.utils.data import Dataset

IMAGE_TOKEN = 3
PATCHES = 16


class MixedInstructions(Dataset):
    """Image conversations with a share of plain text instructions mixed in."""

    def __init__(self, size=20000, seq_len=64, text_ratio=0.12, seed=11):
        rng = random.Random(seed)
        self.seq_len = seq_len
        self.kinds = ["text" if rng.random() < text_ratio else "image" for _ in range(size)]

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        ids = torch.randint(4, 512, (self.seq_len,), generator=g)
        item = {"input_ids": ids, "pixel_values": None}
        if self.kinds[i] == "image":
            ids[1:1 + PATCHES] = IMAGE_TOKEN
            item["pixel_values"] = torch.randn(3, 32, 32, generator=g)
        labels = ids.clone()
        labels[labels == IMAGE_TOKEN] = -100
        item["labels"] = labels
        return item


def collate(items):
    images = [x["pixel_values"] for x in items if x["pixel_values"] is not None]
    return {
        "input_ids": torch.stack([x["input_ids"] for x in items]),
        "labels": torch.stack([x["labels"] for x in items]),
        "pixel_values": torch.stack(images) if images else None,
    }
