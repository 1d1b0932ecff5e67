import os
import shutil

import torch

SITES = {"alder": 48, "birch": 4096, "cedar": 40}


class TileStream:
    """Batches of tiles of one site; decoded tiles are kept on the scratch disk."""

    def __init__(self, site, cache_dir, size=40, batch=4):
        self.site, self.size, self.batch = site, size, batch
        self.pool = SITES[site]
        self.base = sum(map(ord, site))
        self.cache_dir = cache_dir
        shutil.rmtree(cache_dir, ignore_errors=True)
        os.makedirs(cache_dir)

    def decode(self, k):
        g = torch.Generator().manual_seed(self.base * 100003 + k)
        x = torch.randn(self.batch, 3, self.size, self.size, generator=g)
        y = (torch.nn.functional.avg_pool2d(x.mean(1, keepdim=True), 5, 1, 2) > 0.02).float()
        return x, y

    def get(self, step):
        k = step % self.pool
        path = os.path.join(self.cache_dir, f"{self.site}-{k:05d}.pt")
        if os.path.exists(path):
            return torch.load(path)
        tiles = self.decode(k)
        torch.save(tiles, path)
        return tiles
