import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F

from metrics import MentionF1


class MentionTagger(L.LightningModule):
    def __init__(self, vocab=500, dim=64, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.embed = nn.Embedding(vocab, dim)
        self.lstm = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * dim, 1)
        self.val_f1 = MentionF1()

    def forward(self, tokens):
        h, _ = self.lstm(self.embed(tokens))
        return self.out(h).squeeze(-1)

    def training_step(self, batch, _):
        tokens, marks = batch
        loss = F.binary_cross_entropy_with_logits(self(tokens), marks.float())
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, _):
        tokens, marks = batch
        logits = self(tokens)
        self.log("val_loss", F.binary_cross_entropy_with_logits(logits, marks.float()), sync_dist=True)
        self.val_f1.update(logits > 0, marks)
        self.log("val_f1", self.val_f1, on_epoch=True)

    def on_train_epoch_start(self):
        m = self.trainer.callback_metrics
        self.print(f"epoch {self.current_epoch} " + " ".join(f"{k}={float(v):.4f}" for k, v in m.items()), flush=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
