import time
from datetime import timedelta

import lightning.pytorch as pl
import torch
import torch.nn.functional as F
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader, Dataset

from scoring_callback import CaptionScore

WORDS = 64


class FeatureCaptions(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.feat = torch.randn(n, 16, generator=g)
        self.cap = torch.randint(0, WORDS, (n, 12), generator=g)

    def __len__(self):
        return len(self.feat)

    def __getitem__(self, i):
        return self.feat[i], self.cap[i]


class Captioner(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.init_state = torch.nn.Linear(16, 32)
        self.emb = torch.nn.Embedding(WORDS, 32)
        self.cell = torch.nn.GRUCell(32, 32)
        self.head = torch.nn.Linear(32, WORDS)

    def training_step(self, batch, _):
        feat, cap = batch
        h = self.init_state(feat)
        loss = 0.0
        for t in range(cap.shape[1] - 1):
            h = self.cell(self.emb(cap[:, t]), h)
            loss = loss + F.cross_entropy(self.head(h), cap[:, t + 1])
        time.sleep(0.1)
        return loss / (cap.shape[1] - 1)

    def validation_step(self, batch, _):
        feat, cap = batch
        # decoding length follows the schedule of the training epochs
        limit = 6 + min(self.current_epoch, 10) * 2
        h, w, out = self.init_state(feat), cap[:, 0], []
        for _ in range(limit):
            h = self.cell(self.emb(w), h)
            w = self.head(h).argmax(-1)
            out.append(w)
        time.sleep(0.1)
        hyp = torch.stack(out, 1).tolist()
        return [([f"w{i}" for i in r], [f"w{i}" for i in p]) for r, p in zip(cap.tolist(), hyp)]

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


if __name__ == "__main__":
    torch.set_num_threads(1)
    pl.seed_everything(5)
    trainer = pl.Trainer(
        accelerator="cpu", devices=2, max_epochs=200, logger=False, num_sanity_val_steps=0,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        strategy=DDPStrategy(process_group_backend="gloo", timeout=timedelta(minutes=30)),
        callbacks=[CaptionScore()])
    trainer.fit(Captioner(), DataLoader(FeatureCaptions(480, 0), batch_size=8, shuffle=True),
                DataLoader(FeatureCaptions(64, 1), batch_size=8))
