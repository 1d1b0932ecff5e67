import argparse
import os
import tempfile

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset

from module import MentionTagger


def documents(n, seed, length=32, vocab=500):
    g = torch.Generator().manual_seed(seed)
    tokens = torch.randint(1, vocab, (n, length), generator=g)
    marks = tokens % 61 == 0
    return TensorDataset(tokens, marks)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--devices", type=int, default=3)
    p.add_argument("--epochs", type=int, default=200)
    a = p.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(11, verbose=False)
    out = os.path.join(tempfile.gettempdir(), "mention-tagger")
    trainer = L.Trainer(
        accelerator="cpu", devices=a.devices, strategy="ddp", max_epochs=a.epochs,
        num_sanity_val_steps=0, log_every_n_steps=20, enable_progress_bar=False,
        logger=False, default_root_dir=out,
        callbacks=[ModelCheckpoint(dirpath=out, monitor="val_f1", mode="max", save_top_k=1)])
    train = DataLoader(documents(2400, 1), batch_size=8, shuffle=True)
    val = DataLoader(documents(270, 2), batch_size=10)
    trainer.fit(MentionTagger(), train, val)


if __name__ == "__main__":
    main()
