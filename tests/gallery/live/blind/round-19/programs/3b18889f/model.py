import lightning as L
import torch
from torch import nn
from torch.nn import functional as F
from torchmetrics.classification import MulticlassAccuracy

from data import DIM, DOMAINS, NUM_CLASSES


class DomainClassifier(L.LightningModule):
    def __init__(self, width=256, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Linear(DIM, width), nn.GELU(),
            nn.Linear(width, width), nn.GELU(),
            nn.Linear(width, width), nn.GELU(),
            nn.Linear(width, NUM_CLASSES),
        )
        self.val_acc = MulticlassAccuracy(NUM_CLASSES, average="micro")
        self.domain_acc = nn.ModuleDict(
            {name: MulticlassAccuracy(NUM_CLASSES, average="micro") for name in DOMAINS}
        )

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y, _ = batch
        loss = F.cross_entropy(self(x), y, label_smoothing=0.1)
        self.log("train/loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y, d = batch
        logits = self(x)
        self.val_acc.update(logits, y)
        for i in d.unique().tolist():
            self.domain_acc[DOMAINS[i]].update(logits[d == i], y[d == i])

    def on_validation_epoch_end(self):
        results = {"val/acc": self.val_acc.compute()}
        for name, metric in self.domain_acc.items():
            if not metric.update_called:
                continue
            results[f"val/acc_{name}"] = metric.compute()
        self.log_dict(results, rank_zero_only=True)
        if self.global_rank == 0:
            print(f"epoch {self.current_epoch}: " + " ".join(f"{k}={v:.3f}" for k, v in results.items()), flush=True)
        self.val_acc.reset()
        for metric in self.domain_acc.values():
            metric.reset()

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.StepLR(opt, 20, 0.7)}
