import glob
import random

import torch
import webdataset as wds
from torch.utils.data import IterableDataset


def source(root, name, rank, world):
    urls = sorted(glob.glob(f"{root}/{name}/*.tar"))

    def by_rank(shards):
        for i, shard in enumerate(shards):
            if i % world == rank:
                yield shard

    return wds.DataPipeline(
        wds.SimpleShardList(urls),
        by_rank,
        wds.tarfile_to_samples(),
        wds.decode(),
        wds.to_tuple("tokens.npy"),
        wds.map(lambda s: torch.from_numpy(s[0])),
    )


class Blend(IterableDataset):
    """Draws from several sources by weight, each of which is repeated."""

    def __init__(self, sources, weights, seed):
        self.sources = sources
        self.weights = weights
        self.seed = seed

    def _draw(self, streams, i):
        while True:
            if streams[i] is None:
                streams[i] = iter(self.sources[i])
            try:
                return next(streams[i])
            except StopIteration:
                streams[i] = None

    def __iter__(self):
        rng = random.Random(self.seed)
        streams = [None] * len(self.sources)
        order = range(len(self.sources))
        while True:
            i = rng.choices(order, self.weights)[0]
            yield self._draw(streams, i)
