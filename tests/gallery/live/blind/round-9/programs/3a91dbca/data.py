import numpy as np
import torch
from lightning.pytorch import LightningDataModule
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    """Sliding windows over a set of noisy periodic series."""

    def __init__(self, n, length=96, horizon=12, seed=0):
        rng = np.random.default_rng(seed)
        t = np.arange(length + horizon)
        freq = rng.uniform(0.05, 0.4, (n, 1))
        phase = rng.uniform(0, 6.28, (n, 1))
        self.series = (np.sin(freq * t + phase) + 0.1 * rng.standard_normal((n, t.size))).astype("float32")
        self.length = length

    def __len__(self):
        return len(self.series)

    def __getitem__(self, i):
        s = torch.from_numpy(self.series[i])
        return s[: self.length], s[self.length :]


class SeriesData(LightningDataModule):
    def __init__(self, batch_size=32, num_workers=1):
        super().__init__()
        self.batch_size, self.num_workers = batch_size, num_workers

    def setup(self, stage=None):
        self.train = Windows(1280, seed=1)
        self.val = Windows(128, seed=2)

    def _loader(self, ds, shuffle, workers):
        return DataLoader(
            ds, self.batch_size, shuffle=shuffle, num_workers=workers,
            multiprocessing_context="spawn" if workers else None,
        )

    def train_dataloader(self):
        return self._loader(self.train, True, self.num_workers)

    def val_dataloader(self):
        return self._loader(self.val, False, 0)
