import numpy as np
import torch
from torch.utils.data import Dataset


class ParkingLotScenes(Dataset):
    """Bird's eye crops of parking lots, one blob per car."""

    def __init__(self, n, size=24, seed=0, max_cars=3):
        self.n, self.size, self.seed, self.max_cars = n, size, seed, max_cars

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng(self.seed * 100003 + i)
        img = rng.normal(0, 0.05, (1, self.size, self.size)).astype("float32")
        heat = np.zeros((1, self.size // 4, self.size // 4), "float32")
        for _ in range(int(rng.integers(0, self.max_cars + 1))):
            y, x = rng.integers(2, self.size - 3, 2)
            img[0, y - 1:y + 2, x - 1:x + 2] += 1.0
            heat[0, y // 4, x // 4] = 1.0
        return torch.from_numpy(img), torch.from_numpy(heat), i
