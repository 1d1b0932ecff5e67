import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning import LightningModule
from torchmetrics.classification import MulticlassConfusionMatrix


class Classifier(LightningModule):
    def __init__(self, dim=64, classes=6, width=256, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Linear(dim, width), nn.GELU(), nn.LayerNorm(width),
            nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width),
            nn.Linear(width, classes),
        )
        self.train_confmat = MulticlassConfusionMatrix(num_classes=classes)

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        self.train_confmat.update(logits.argmax(1), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True, sync_dist=True, prog_bar=True)
        return loss

    def on_train_epoch_end(self):
        cm = self.train_confmat.compute().float()
        recall = cm.diag() / cm.sum(1).clamp(min=1)
        self.log("train_recall_min", recall.min(), rank_zero_only=True)
        self.train_confmat.reset()

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y), sync_dist=True)
        self.log("val_acc", (logits.argmax(1) == y).float().mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
