import lightning as L
import torch
from torch import nn
from torch.nn import functional as F
from torchmetrics.classification import MulticlassAccuracy


class RhythmNet(L.LightningModule):
    def __init__(self, classes=5, width=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, width, 9, 2, 4), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, 2 * width, 9, 2, 4), nn.BatchNorm1d(2 * width), nn.ReLU(),
            nn.AdaptiveAvgPool1d(8), nn.Flatten(), nn.Linear(16 * width, classes),
        )
        self.acc = MulticlassAccuracy(classes)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self.net(x)
        self.acc.update(logits, y)
        return F.cross_entropy(logits, y)

    def on_train_epoch_end(self):
        acc = self.acc.compute()
        self.acc.reset()
        self.log("train_acc", acc)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.02, momentum=0.9)
