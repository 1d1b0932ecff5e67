import os
import tempfile
from datetime import timedelta

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader, Dataset
from torchmetrics.classification import MulticlassF1Score

from callbacks import AsyncLog, CheckAllRanks, CollectGarbage


class Sequences(Dataset):
    def __init__(self, n, seed, dim=24, classes=6):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, classes, (n,), generator=g)
        self.lengths = torch.randint(10, 28, (n,), generator=g)
        self.dim = dim

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        t = torch.arange(int(self.lengths[i])).float()[:, None]
        x = torch.sin(t * (0.1 + 0.07 * float(self.y[i])) + torch.linspace(0, 3, self.dim)[None])
        return x + 0.6 * torch.randn(x.shape, generator=g), int(self.y[i])


def collate(items):
    xs, ys = zip(*items)
    return nn.utils.rnn.pad_sequence(xs, batch_first=True), torch.tensor(ys)


class Tagger(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(24, 64, num_layers=1, batch_first=True, bidirectional=True)
        self.head = nn.Linear(128, 6)
        self.f1 = MulticlassF1Score(6)

    def forward(self, x):
        return self.head(self.rnn(x)[0].mean(1))

    def training_step(self, batch, _):
        return F.cross_entropy(self(batch[0]), batch[1])

    def validation_step(self, batch, _):
        self.f1.update(self(batch[0]), batch[1])

    def on_validation_epoch_end(self):
        self.log("val_f1", self.f1.compute(), sync_dist=False, rank_zero_only=False)
        self.f1.reset()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


def main():
    torch.set_num_threads(1)
    L.seed_everything(1)
    root = os.environ.setdefault("RUN_ROOT", tempfile.mkdtemp(prefix="tagger-"))
    train = DataLoader(Sequences(8192, 0), 32, shuffle=True, collate_fn=collate, num_workers=1, persistent_workers=True)
    val = DataLoader(Sequences(2048, 1), 64, collate_fn=collate)
    trainer = L.Trainer(
        accelerator="cpu", devices=2, max_epochs=10000, logger=False, default_root_dir=root,
        enable_progress_bar=False, enable_model_summary=False,
        strategy=DDPStrategy(process_group_backend="gloo", timeout=timedelta(hours=2)),
        callbacks=[CollectGarbage(), CheckAllRanks(), AsyncLog(), ModelCheckpoint(root, monitor="val_f1", mode="max", save_top_k=2)],
    )
    trainer.fit(Tagger(), train, val)


if __name__ == "__main__":
    main()
