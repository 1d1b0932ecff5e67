import time
from collections import defaultdict

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F

from corpora import CORPORA


class MixtureClassifier(L.LightningModule):
    def __init__(self, lr=1e-2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2))
        self.lr = lr
        self.per_corpus = defaultdict(list)

    def training_step(self, batch, batch_idx):
        time.sleep(0.1)
        loss = F.cross_entropy(self.net(batch["x"]), batch["y"])
        if self.trainer.is_global_zero and self.global_step % 10 == 0:
            print(f"step {self.global_step} train_loss {loss.item():.4f}", flush=True)
        return loss

    def validation_step(self, batch, batch_idx):
        time.sleep(0.05)
        losses = F.cross_entropy(self.net(batch["x"]), batch["y"], reduction="none")
        for corpus, value in zip(batch["corpus"].tolist(), losses):
            self.per_corpus[CORPORA[corpus]].append(value)

    def on_validation_epoch_end(self):
        overall = torch.stack([v for vs in self.per_corpus.values() for v in vs]).mean()
        self.log("val/loss", overall, sync_dist=True)
        for name in CORPORA:
            if name in self.per_corpus:
                self.log(f"val/loss_{name}", torch.stack(self.per_corpus[name]).mean(), sync_dist=True)
        self.per_corpus.clear()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)
