import time

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.utilities import rank_zero_only
from torchmetrics.classification import MulticlassAccuracy, MulticlassConfusionMatrix


class DefectClassifier(L.LightningModule):
    def __init__(self, in_dim=32, hidden=64, num_classes=6, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Linear(in_dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, num_classes)
        )
        self.val_acc = MulticlassAccuracy(num_classes)
        self.confmat = MulticlassConfusionMatrix(num_classes)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        time.sleep(0.12)
        self.log("train_loss", loss, on_step=True, on_epoch=False)
        if batch_idx % 10 == 0 and self.global_rank == 0:
            print(f"epoch {self.current_epoch} step {self.global_step} loss {loss.item():.4f}", flush=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self.net(x)
        time.sleep(0.05)
        self.val_acc.update(logits, y)
        self.confmat.update(logits, y)
        self.log("val_acc", self.val_acc, on_step=False, on_epoch=True)

    @rank_zero_only
    def render_confusion(self):
        table = self.confmat.compute()
        rows = [" ".join(f"{int(v):4d}" for v in row) for row in table]
        print("confusion\n" + "\n".join(rows), flush=True)

    def on_validation_epoch_end(self):
        if self.trainer.sanity_checking:
            self.confmat.reset()
            return
        if (self.current_epoch + 1) % 3 == 0:
            self.render_confusion()
            self.confmat.reset()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
