import torch
from torch.utils.data import Dataset


def load_volume(i, size):
    gen = torch.Generator().manual_seed(i)
    return torch.randn(2, size, size, size, generator=gen)


def normalize(vol):
    low, high = torch.quantile(vol.flatten()[::7], torch.tensor([0.01, 0.99]))
    return ((vol - low) / (high - low)).clamp(0, 1)


class RuntimeCacheDataset(Dataset):
    """Runs the deterministic transforms once per volume; all processes share the result."""

    def __init__(self, n, size, crop, cache):
        self.n = n
        self.size = size
        self.crop = crop
        self.cache = cache

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        vol = self.cache[i]
        if vol is None:
            vol = normalize(load_volume(i, self.size)).numpy()
            self.cache[i] = vol
        start = torch.randint(0, self.size - self.crop + 1, (3,)).tolist()
        z, y, x = (slice(s, s + self.crop) for s in start)
        patch = torch.from_numpy(vol[:, z, y, x].copy())
        return patch[:1], (patch[1:] > 0.5).float()
