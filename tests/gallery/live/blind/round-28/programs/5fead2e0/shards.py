"""Shard store with a local cache in front of a (simulated) object store."""
import collections
import random
import time

import torch
from torch.utils.data import Dataset, Sampler

SAMPLES_PER_SHARD = 32


class ObjectStore:
    def __init__(self, latency=1.0):
        self.latency = latency

    def download(self, shard_id):
        time.sleep(self.latency)
        gen = torch.Generator().manual_seed(shard_id)
        x = torch.randn(SAMPLES_PER_SHARD, 24, generator=gen)
        return x, (x[:, :8].sum(1) > 0).long()


class ShardCache:
    """Keeps the most recently used shards; cache_limit counts shards."""

    def __init__(self, store, cache_limit):
        self.store, self.cache_limit = store, cache_limit
        self.entries = collections.OrderedDict()
        self.hits = self.misses = 0

    def get(self, shard_id):
        if shard_id in self.entries:
            self.hits += 1
            self.entries.move_to_end(shard_id)
            return self.entries[shard_id]
        self.misses += 1
        data = self.store.download(shard_id)
        self.entries[shard_id] = data
        while len(self.entries) > self.cache_limit:
            self.entries.popitem(last=False)
        return data


class StreamingShards(Dataset):
    def __init__(self, shard_ids, cache):
        self.shard_ids, self.cache = list(shard_ids), cache

    def __len__(self):
        return len(self.shard_ids) * SAMPLES_PER_SHARD

    def __getitem__(self, index):
        x, y = self.cache.get(self.shard_ids[index // SAMPLES_PER_SHARD])
        i = index % SAMPLES_PER_SHARD
        return x[i], y[i]


class WithinShardShuffle(Sampler):
    """Visits the shards in order and shuffles the samples inside each, n samples per epoch."""

    def __init__(self, dataset, n, seed):
        self.dataset, self.n, self.rng = dataset, n, random.Random(seed)
        self.cursor = 0

    def __len__(self):
        return self.n

    def __iter__(self):
        left = self.n
        while left > 0:
            shard = self.cursor % len(self.dataset.shard_ids)
            order = list(range(SAMPLES_PER_SHARD))
            self.rng.shuffle(order)
            for i in order[:left]:
                yield shard * SAMPLES_PER_SHARD + i
            left -= SAMPLES_PER_SHARD
            self.cursor += 1


def assign_by_language(world):
    """Shards are grouped by language so that a rank sees whole languages."""
    sizes = {"en": 14, "de": 5, "fr": 4, "es": 4, "it": 2, "nl": 2}
    groups, first = [], 0
    for _, n in sorted(sizes.items(), key=lambda kv: kv[1]):
        groups.append(range(first, first + n))
        first += n
    ranks = [[] for _ in range(world)]
    for ids in reversed(groups):
        min(ranks, key=len).extend(ids)
    return ranks[::-1]
