import lightning.pytorch as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

LABELS = ["noise", "speech", "music", "engine", "bird", "rain", "siren", "dog"]


class Clips(Dataset):
    """Log-mel patches with a label name from the annotation table."""

    def __init__(self, n=8192):
        gen = torch.Generator().manual_seed(2)
        self.y = torch.randint(0, len(LABELS), (n,), generator=gen)
        self.names = [LABELS[int(i)] for i in self.y]
        self.names[5105] = "Siren "
        self.proto = torch.randn(len(LABELS), 40, 24, generator=gen)

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        gen = torch.Generator().manual_seed(i)
        return self.proto[self.y[i]] + 2 * torch.randn(40, 24, generator=gen), self.names[i]


class Tagger(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.index = {n: i for i, n in enumerate(LABELS)}
        self.rnn = nn.GRU(40, 96, num_layers=2, batch_first=True)
        self.out = nn.Linear(96, len(LABELS))

    def training_step(self, batch, batch_idx):
        x, names = batch
        target = torch.tensor([self.index[n] for n in names])
        h, _ = self.rnn(x.transpose(1, 2))
        return F.cross_entropy(self.out(h[:, -1]), target)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)

    def train_dataloader(self):
        return DataLoader(Clips(), batch_size=16, shuffle=False)
