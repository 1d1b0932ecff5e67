import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchmetrics import MeanMetric, MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score


class Glyphs(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, 10, (n,), generator=g)
        base = torch.randn(10, 1, 16, 16, generator=torch.Generator().manual_seed(0))
        self.x = base[self.y] + 0.8 * torch.randn(n, 1, 16, 16, generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class GlyphData(L.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(Glyphs(12000, 1), batch_size=32, shuffle=True, num_workers=1, persistent_workers=True)

    def val_dataloader(self):
        return DataLoader(Glyphs(3000, 2), batch_size=64)


class GlyphNet(L.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(),
            nn.Linear(768, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10),
        )
        self.lr = lr
        metrics = MetricCollection([MulticlassAccuracy(10), MulticlassF1Score(10)])
        self.train_metrics = metrics.clone(prefix="train/")
        self.val_metrics = metrics.clone(prefix="val/")
        self.val_loss = MeanMetric()

    def training_step(self, batch, _):
        x, y = batch
        logits = self.net(x)
        loss = F.cross_entropy(logits, y)
        self.train_metrics.update(logits, y)
        self.log("train/loss", loss, prog_bar=True)
        return loss

    def on_train_epoch_start(self):
        self.train_metrics.reset()

    def validation_step(self, batch, _):
        x, y = batch
        logits = self.net(x)
        self.val_loss.update(F.cross_entropy(logits, y), len(y))
        self.val_metrics.update(logits, y)

    def on_validation_epoch_end(self):
        res = self.val_metrics.compute()
        res.update(self.train_metrics.compute())
        res["val/loss"] = self.val_loss.compute()
        self.log_dict(res)
        self.val_metrics.reset()
        self.val_loss.reset()
        self.print(f"epoch {self.current_epoch} step {self.global_step} " +
                   " ".join(f"{k} {v:.3f}" for k, v in res.items()))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr)
