import random

import torch
from torch.utils.data import Dataset

MODALITIES = ("image", "mesh", "cloud")


class Catalogue:
    """Which object exists in which modality."""

    def __init__(self, categories, per_category=40, seed=3):
        rng = random.Random(seed)
        self.objects = []
        for c in range(categories):
            for k in range(per_category):
                have = {"image"}
                if c != categories - 7 and rng.random() < 0.6:
                    have.add("mesh")
                if rng.random() < 0.7:
                    have.add("cloud")
                self.objects.append((c, k, frozenset(have)))
        self.by_category = {}
        for o in self.objects:
            self.by_category.setdefault(o[0], []).append(o)


class CrossModalTriplets(Dataset):
    def __init__(self, catalogue, dim=48):
        self.cat, self.dim = catalogue, dim

    def __len__(self):
        return len(self.cat.objects)

    def _feature(self, obj, modality):
        c, k, _ = obj
        g = torch.Generator().manual_seed(c * 1000 + MODALITIES.index(modality))
        base = torch.randn(self.dim, generator=g)
        return base + 0.4 * torch.randn(self.dim)

    def _partner(self, category, modality):
        pool = self.cat.by_category[category]
        obj = random.choice(pool)
        while modality not in obj[2]:
            obj = random.choice(pool)
        return obj

    def __getitem__(self, i):
        obj = self.cat.objects[i]
        feats = [self._feature(obj, "image")]
        for m in MODALITIES[1:]:
            src = obj if m in obj[2] else self._partner(obj[0], m)
            feats.append(self._feature(src, m))
        return torch.stack(feats), obj[0]
