"""Utterances in duration buckets; every batch holds about the same number of utterances."""
import json
import os
import random
import time

import torch
from torch.utils.data import IterableDataset


def bucket_plan(path, epoch, batches):
    """Statistics pass over the manifest, then one bucket index per batch slot."""
    rng = random.Random(epoch)
    time.sleep(5.0)
    plan = [rng.choice([1, 1, 2, 2, 3, 4, 6]) for _ in range(batches)]
    with open(path + ".tmp", "w") as f:
        json.dump(plan, f)
    os.replace(path + ".tmp", path)


class BucketedCuts(IterableDataset):
    def __init__(self, plan_path, rank, world, feat_dim=20):
        with open(plan_path) as f:
            self.plan = json.load(f)[rank::world]
        self.rank, self.feat_dim = rank, feat_dim

    def __iter__(self):
        g = torch.Generator().manual_seed(self.rank)
        for bucket in self.plan:
            frames = 8 * bucket
            time.sleep(0.03)
            feats = torch.randn(6, frames, self.feat_dim, generator=g)
            yield feats, feats[..., :1].cumsum(1).gt(0).long().squeeze(-1)
