"""Map-style access to samples in remote shards, with a bounded local cache."""
import math
import os
import time

import torch
from torch.utils.data import Dataset, Sampler


class Bucket:
    """Object storage; transfers run at the rate that one connection gets."""

    def __init__(self, root, latency=0.08, rate=22_000):
        self.root, self.latency, self.rate = root, latency, rate

    def names(self):
        return sorted(os.listdir(self.root))

    def download(self, name, dest):
        time.sleep(self.latency)
        with open(os.path.join(self.root, name), "rb") as src, open(dest + ".part", "wb") as dst:
            while chunk := src.read(2048):
                dst.write(chunk)
                time.sleep(len(chunk) / self.rate)
        os.replace(dest + ".part", dest)


class LocalCache:
    def __init__(self, folder, bucket, limit):
        self.folder, self.bucket, self.limit = folder, bucket, limit
        self.last_use = {}

    def path(self, name):
        dest = os.path.join(self.folder, name)
        if not os.path.exists(dest):
            self._make_room()
            self.bucket.download(name, dest)
        self.last_use[name] = time.monotonic()
        return dest

    def _make_room(self):
        held = [n for n in os.listdir(self.folder) if n.endswith(".pt")]
        held.sort(key=lambda n: self.last_use.get(n, 0.0))
        while held and sum(os.path.getsize(os.path.join(self.folder, n)) for n in held) > self.limit:
            os.remove(os.path.join(self.folder, held.pop(0)))


class ShardedTokens(Dataset):
    def __init__(self, bucket_dir, cache_dir, samples_per_shard, cache_limit):
        os.makedirs(cache_dir, exist_ok=True)
        self.bucket = Bucket(bucket_dir)
        self.names = self.bucket.names()
        self.per_shard = samples_per_shard
        self.cache = LocalCache(cache_dir, self.bucket, cache_limit)

    def __len__(self):
        return len(self.names) * self.per_shard

    def __getitem__(self, index):
        shard, row = divmod(index, self.per_shard)
        tokens = torch.load(self.cache.path(self.names[shard]), weights_only=True)[row].long()
        return tokens[:-1], tokens[1:]


class CorpusSampler(Sampler):
    """First pass in corpus order, later passes over a permutation of all samples."""

    def __init__(self, size, rank, world, batch, seed=17):
        self.size, self.rank, self.world, self.batch, self.seed = size, rank, world, batch, seed
        self.epoch = 0
        self.count = math.floor(size / (world * batch)) * batch

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.count

    def __iter__(self):
        if self.epoch == 0:
            order = list(range(self.size))
        else:
            g = torch.Generator().manual_seed(self.seed + self.epoch)
            order = torch.randperm(self.size, generator=g).tolist()
        return iter(order[self.rank::self.world][:self.count])
