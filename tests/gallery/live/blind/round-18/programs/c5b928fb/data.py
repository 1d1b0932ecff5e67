import logging
import os

import lightning as L
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

log = logging.getLogger("events")


class SensorWindows(Dataset):
    def __init__(self, path, width=128):
        self.path, self.width = path, width
        self.trace = None
        self.n = np.load(path, mmap_mode="r").shape[0] - width - 1

    def __len__(self):
        return self.n // 16

    def __getitem__(self, i):
        if self.trace is None:
            self.trace = np.load(self.path, mmap_mode="r")
            log.info("opened %s in reader %d", os.path.basename(self.path), torch.utils.data.get_worker_info().id)
        w = np.array(self.trace[i * 16: i * 16 + self.width + 1])
        return torch.from_numpy(w[:-1]), torch.from_numpy(w[1:])


class SensorData(L.LightningDataModule):
    def __init__(self, run_dir, batch_size=8):
        super().__init__()
        self.path, self.batch_size = os.path.join(run_dir, "trace.npy"), batch_size

    def prepare_data(self):
        if not os.path.exists(self.path):
            rng = np.random.default_rng(2)
            t = np.arange(40_000)[:, None] * np.linspace(0.01, 0.3, 6)
            np.save(self.path, (np.sin(t) + 0.1 * rng.standard_normal(t.shape)).astype(np.float32))

    def train_dataloader(self):
        return DataLoader(SensorWindows(self.path), batch_size=self.batch_size, shuffle=True, num_workers=2)
