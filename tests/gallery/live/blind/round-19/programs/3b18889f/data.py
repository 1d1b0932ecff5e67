import lightning as L
import torch
from torch.utils.data import DataLoader, Dataset

DOMAINS = ("photo", "cartoon", "infograph", "quickdraw", "sketch")
NUM_CLASSES = 8
DIM = 256


class DomainSplit(Dataset):
    """Feature vectors of images from several visual domains."""

    def __init__(self, counts, seed):
        g = torch.Generator().manual_seed(seed)
        centers = torch.randn(NUM_CLASSES, DIM, generator=torch.Generator().manual_seed(7))
        shift = torch.randn(len(DOMAINS), DIM, generator=torch.Generator().manual_seed(8)) * 0.5
        xs, ys, ds = [], [], []
        for name, n in counts.items():
            d = DOMAINS.index(name)
            y = torch.randint(NUM_CLASSES, (n,), generator=g)
            xs.append(centers[y] + shift[d] + torch.randn(n, DIM, generator=g) * 2)
            ys.append(y)
            ds.append(torch.full((n,), d))
        self.x, self.y, self.d = torch.cat(xs), torch.cat(ys), torch.cat(ds)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i], self.d[i]


class DomainData(L.LightningDataModule):
    def __init__(self, batch_size=16):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        self.train = DomainSplit({"photo": 2400, "cartoon": 900, "infograph": 400, "quickdraw": 800, "sketch": 40}, 0)
        self.val = DomainSplit({"photo": 240, "cartoon": 90, "infograph": 45, "quickdraw": 80, "sketch": 2}, 1)

    def train_dataloader(self):
        return DataLoader(self.train, self.batch_size, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.val, self.batch_size)
