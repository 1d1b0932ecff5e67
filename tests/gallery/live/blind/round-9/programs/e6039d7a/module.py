import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F


class Classifier(L.LightningModule):
    def __init__(self, classes=8, width=48, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Conv1d(4, width, 7, padding=3), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, width, 7, padding=3), nn.BatchNorm1d(width), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(width, classes),
        )
        self.hits = {}

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        if batch_idx % 20 == 0 and self.global_rank == 0:
            print(f"epoch {self.current_epoch} batch {batch_idx} loss {loss.item():.4f}", flush=True)
        return loss

    def on_validation_epoch_start(self):
        self.hits = {}

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val/loss", F.cross_entropy(logits, y), sync_dist=True)
        pred = logits.argmax(-1)
        for c in y.unique().tolist():
            m = y == c
            n, k = self.hits.get(c, (0, 0))
            self.hits[c] = (n + int(m.sum()), k + int((pred[m] == c).sum()))

    def on_validation_epoch_end(self):
        recall = {f"val/recall_{c}": k / n for c, (n, k) in sorted(self.hits.items())}
        self.log_dict(recall, sync_dist=True)
        self.log("val/balanced", sum(recall.values()) / len(recall), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
