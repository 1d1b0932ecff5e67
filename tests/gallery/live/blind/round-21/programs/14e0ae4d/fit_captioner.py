import argparse
import datetime
import time

import lightning.pytorch as pl
import torch
import torch.nn as nn
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader, Dataset

from caption_eval import CaptionScorer


class CaptionTokens(Dataset):
    def __init__(self, size=20000, vocab=64):
        self.size, self.vocab = size, vocab

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.randint(0, self.vocab, (10,), generator=g)


class Captioner(pl.LightningModule):
    def __init__(self, vocab=64, dim=32):
        super().__init__()
        self.vocab = vocab
        self.model = nn.Sequential(nn.Embedding(vocab, dim), nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, vocab))

    def training_step(self, batch, batch_idx):
        time.sleep(0.1)
        logits = self.model(batch)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch.flatten())
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    pl.seed_everything(1)
    trainer = pl.Trainer(
        accelerator="cpu", devices=args.devices, max_epochs=20,
        strategy=DDPStrategy(process_group_backend="gloo", timeout=datetime.timedelta(hours=1)),
        callbacks=[CaptionScorer()], logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(Captioner(), DataLoader(CaptionTokens(), batch_size=8, shuffle=True, num_workers=0))


if __name__ == "__main__":
    main()
