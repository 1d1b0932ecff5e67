import lightning as L
import torch
from torch.utils.data import DataLoader, Dataset


class Spectra(Dataset):
    def __init__(self, n, width=256, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.freq = torch.rand(n, 4, generator=g) * 12
        self.amp = torch.rand(n, 4, generator=g)
        self.axis = torch.linspace(0, 1, width)

    def __len__(self):
        return len(self.freq)

    def __getitem__(self, i):
        clean = (self.amp[i, :, None] * torch.sin(self.freq[i, :, None] * self.axis * 6.283)).sum(0)
        return clean, clean + 0.2 * torch.randn_like(clean)


class SpectraModule(L.LightningDataModule):
    def __init__(self, batch_size=48):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        self.train = Spectra(24000, seed=1)
        self.val = Spectra(1200, seed=2)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=self.batch_size)
