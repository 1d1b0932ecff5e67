import numpy as np
import torch
from torch.utils.data import Dataset


class Recordings(Dataset):
    """Windows of synthetic ECG-like recordings with a rhythm class each."""

    def __init__(self, subjects=192, length=512, seed=0):
        self.subjects = subjects
        self.length = length
        self.seed = seed

    def __len__(self):
        return self.subjects

    def __getitem__(self, i):
        rng = np.random.default_rng(self.seed * 100003 + i)
        label = i % 5
        t = np.linspace(0, 8, self.length, dtype=np.float32)
        wave = np.sin(2 * np.pi * (0.8 + 0.2 * label) * t + rng.uniform(0, 6)) ** 15
        wave = wave + 0.1 * rng.standard_normal(self.length).astype(np.float32)
        return torch.from_numpy(wave.astype(np.float32))[None], label
