import numpy as np
import torch
from torch.utils.data import Dataset, Sampler


class PoseDataset(Dataset):
    """Keypoint annotations kept in memory, crops rendered on the fly."""

    def __init__(self, num, joints=17, size=48, seed=0):
        rng = np.random.default_rng(seed)
        self.size = size
        self.records = [
            {"id": i, "joints": rng.uniform(4, size - 4, (joints, 2)).astype(np.float32),
             "visible": rng.integers(0, 2, joints).astype(np.float32)}
            for i in range(num)
        ]

    def __len__(self):
        return len(self.records)

    def __getitem__(self, i):
        rec = self.records[i]
        img = np.zeros((1, self.size, self.size), dtype=np.float32)
        for (x, y), v in zip(rec["joints"], rec["visible"]):
            img[0, int(y) - 1 : int(y) + 2, int(x) - 1 : int(x) + 2] += 0.5 + v
        return torch.from_numpy(img), torch.from_numpy(rec["joints"] / self.size)


class SubsetPerEpoch(Sampler):
    """A fresh random subset each epoch, the same on all ranks."""

    def __init__(self, total, count, seed=0):
        self.total, self.count, self.seed = total, count, seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.count

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        return iter(torch.randperm(self.total, generator=g)[: self.count].tolist())
