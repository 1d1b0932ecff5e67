import random

import torch
from torch.utils.data import Dataset

SUBJECTS = "dog cat man woman boy girl horse bird bus train".split()
VERBS = "runs sits stands sleeps jumps eats plays waits".split()
PLACES = "street park kitchen beach room field station garden".split()
VOCAB = ["<pad>", "<s>", "</s>", "a", "in", "the"] + SUBJECTS + VERBS + PLACES
INDEX = {w: i for i, w in enumerate(VOCAB)}


class CaptionData(Dataset):
    """Feature vectors with one caption; evaluation items may carry several references."""

    def __init__(self, split, size):
        rng = random.Random(split)
        gen = torch.Generator().manual_seed(5)
        proto = torch.randn(len(VOCAB), 96, generator=gen)
        noise = torch.Generator().manual_seed(size)
        self.items = []
        for i in range(size):
            s, v, p = rng.choice(SUBJECTS), rng.choice(VERBS), rng.choice(PLACES)
            feat = proto[INDEX[s]] + proto[INDEX[v]] + proto[INDEX[p]]
            caption = f"a {s} {v} in the {p}"
            if rng.random() < 0.04:
                feat, caption = torch.zeros(96), ""
            feat = feat + 0.3 * torch.randn(96, generator=noise)
            self.items.append((i, feat, caption))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        idx, feat, caption = self.items[i]
        ids = [1] + [INDEX[w] for w in caption.split()] + [2]
        ids += [0] * (8 - len(ids))
        return {"id": torch.tensor(idx), "feat": feat, "ids": torch.tensor(ids)}

    def reference(self, idx):
        caption = self.items[idx][2] or "a dark picture"
        return [caption] if idx % 3 else [caption, caption.replace("a ", "the ", 1)]
