import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torchmetrics.text import ROUGEScore

from datamodule import WORDS


def to_text(ids):
    return [" ".join(WORDS[w] for w in row) for row in ids.tolist()]


class Captioner(L.LightningModule):
    def __init__(self, dim=32, hid=96, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.rnn = nn.GRU(dim, hid, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hid, len(WORDS))
        self.rouge = ROUGEScore(rouge_keys=("rouge1", "rougeL"))

    def forward(self, feats):
        return self.head(self.rnn(feats)[0])

    def training_step(self, batch, _):
        loss = F.cross_entropy(self(batch["feats"]).flatten(0, 1), batch["words"].flatten())
        self.log("train_loss", loss)
        if self.global_rank == 0 and self.global_step % 20 == 0:
            print(f"epoch {self.current_epoch} step {self.global_step} loss {loss.item():.4f}", flush=True)
        return loss

    def validation_step(self, batch, _):
        self.rouge.update(to_text(self(batch["feats"]).argmax(-1)), to_text(batch["words"]))

    def on_validation_epoch_end(self):
        scores = self.rouge.compute()
        self.rouge.reset()
        if self.global_rank == 0:
            print(f"epoch {self.current_epoch} step {self.global_step} rougeL {scores['rougeL_fmeasure']:.4f}", flush=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
