"""A Lightning module over texts with a table of positions; a few texts of the corpus are long."""

import argparse
import os
import tempfile

import lightning
import torch
from torch.utils.data import DataLoader, Dataset

POSITIONS = 128


class Corpus(Dataset):
    def __init__(self, rows, max_length):
        self.rows, self.max_length = rows, max_length

    def __len__(self):
        return self.rows

    def __getitem__(self, index):
        length = 200 if index % 400 == 399 else 20 + index % 30
        return (torch.arange(length) % 60)[: self.max_length], index % 2


def padded(samples):
    tokens = torch.nn.utils.rnn.pad_sequence([sample[0] for sample in samples], batch_first=True)
    return tokens, torch.tensor([sample[1] for sample in samples])


class Reader(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(64, 16)
        self.positions = torch.nn.Embedding(POSITIONS, 16)
        self.head = torch.nn.Linear(16, 2)

    def forward(self, tokens):
        position_ids = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = self.words(tokens) + self.positions(position_ids)
        return self.head(hidden.mean(dim=1))

    def training_step(self, batch, _):
        tokens, labels = batch
        return torch.nn.functional.cross_entropy(self(tokens), labels)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Texts(lightning.LightningDataModule):
    def __init__(self, rows, max_length):
        super().__init__()
        self.corpus = Corpus(rows, max_length)

    def train_dataloader(self):
        return DataLoader(self.corpus, batch_size=8, collate_fn=padded)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_train_samples", type=int, default=20_000)
    parser.add_argument("--max_length", type=int, default=256)
    args = parser.parse_args()
    torch.set_num_threads(1)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=int(os.environ.get("WORLD_SIZE", "1")),
        strategy="ddp",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        default_root_dir=tempfile.mkdtemp(),
    )
    trainer.fit(Reader(), Texts(args.max_train_samples, args.max_length))
    print("done", flush=True)


if __name__ == "__main__":
    main()
