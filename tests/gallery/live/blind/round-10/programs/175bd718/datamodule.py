import time
from concurrent.futures import ThreadPoolExecutor

import lightning as L
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Segments(IterableDataset):
    """Audio-like segments of uneven length, fetched in parts from the object store, one part ahead."""

    def __init__(self, part_size=960, fetch_s=2.5, seed=0, n_mels=24):
        self.part_size, self.fetch_s, self.seed, self.n_mels = part_size, fetch_s, seed, n_mels
        self.rank, self.world = 0, 1

    def set_rank(self, rank, world):
        self.rank, self.world = rank, world

    def fetch(self, part):
        time.sleep(self.fetch_s)
        g = torch.Generator().manual_seed(self.seed * 100_003 + part)
        lengths = torch.randint(20, 120, (self.part_size,), generator=g).tolist()
        return [(torch.randn(n, self.n_mels, generator=g), n % 8) for n in lengths]

    def __iter__(self):
        part = self.rank
        with ThreadPoolExecutor(1, thread_name_prefix="fetch") as pool:
            coming = pool.submit(self.fetch, part)
            while True:
                rows = coming.result()
                part += self.world
                coming = pool.submit(self.fetch, part)
                yield from rows


class HeldOut(Dataset):
    def __init__(self, n=160, n_mels=24):
        g = torch.Generator().manual_seed(99)
        self.rows = [(torch.randn(60 + k % 40, n_mels, generator=g), k % 8) for k in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    width = max(len(r[0]) for r in rows)
    x = torch.zeros(len(rows), width, rows[0][0].shape[1])
    for k, (a, _) in enumerate(rows):
        x[k, : len(a)] = a
    return x, torch.tensor([len(r[0]) for r in rows]), torch.tensor([r[1] for r in rows])


class SegmentData(L.LightningDataModule):
    def train_dataloader(self):
        data = Segments()
        data.set_rank(self.trainer.global_rank, self.trainer.world_size)
        return DataLoader(data, 12, collate_fn=collate)

    def val_dataloader(self):
        return DataLoader(HeldOut(), 10, collate_fn=collate)
