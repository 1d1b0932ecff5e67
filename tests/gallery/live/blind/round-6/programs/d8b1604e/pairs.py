import numpy as np
import torch
from torch.utils.data import Dataset


class ParaphrasePairs(Dataset):
    """Builds noisy views of a sentence with a character level edit model."""

    def __init__(self, n, length=48, vocab=2000):
        self.n, self.length, self.vocab = n, length, vocab
        self.mix = None

    def __len__(self):
        return self.n

    def _setup(self):
        g = torch.Generator().manual_seed(0)
        self.mix = torch.randn(256, 256, generator=g) / 16

    def __getitem__(self, i):
        if self.mix is None:
            self._setup()
        rng = np.random.default_rng(i)
        a = rng.integers(0, self.vocab, self.length)
        h = torch.from_numpy(rng.standard_normal((256, 256), dtype="float32"))
        for _ in range(6):
            h = torch.tanh(h @ self.mix)
        keep = h[: self.length, 0].numpy() > 0
        b = np.where(keep, a, rng.integers(0, self.vocab, self.length))
        return torch.from_numpy(a), torch.from_numpy(b)
