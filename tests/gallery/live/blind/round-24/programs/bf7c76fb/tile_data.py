import lightning as L
from torch.utils.data import DataLoader, Dataset

from tile_cache import TileCache, Warmer


def layers_of(index):
    return 30 if index >= 30000 else 2


def scene_plan(rank, count=8000):
    if rank == 0:
        return list(range(count))
    return list(range(10000, 10120)) + list(range(30000, 30000 + count - 120))


class TileDataset(Dataset):
    def __init__(self, cache, tiles):
        self.cache = cache
        self.tiles = tiles

    def __len__(self):
        return len(self.tiles)

    def __getitem__(self, k):
        tile = self.cache.read(self.tiles[k])
        return tile, tile[:8].sum()


class TileModule(L.LightningDataModule):
    def setup(self, stage):
        self.tiles = scene_plan(self.trainer.global_rank)
        self.cache = TileCache(layers_of)
        self.warmer = Warmer(self.cache, self.tiles)
        self.warmer.start()

    def train_dataloader(self):
        return DataLoader(TileDataset(self.cache, self.tiles), batch_size=2, num_workers=2, prefetch_factor=2,
                          persistent_workers=True)

    def teardown(self, stage):
        self.warmer.process.kill()
