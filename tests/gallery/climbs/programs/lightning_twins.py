"""A Lightning module that looks for near twins among its held-out predictions after each validation."""

import argparse
import os
import tempfile
from datetime import timedelta

import lightning
import torch
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader, TensorDataset


def twins(codes):
    """Count the pairs that differ in one place at most."""
    found = 0
    for place, one in enumerate(codes):
        if place % 250 == 0:
            print("compared", place, "of", len(codes), flush=True)
        for other in codes[:place]:
            found += sum(a != b for a, b in zip(one, other)) <= 1
    return found


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(32, 2)
        self.codes = []

    def training_step(self, batch, _):
        inputs, labels = batch
        return torch.nn.functional.cross_entropy(self.layer(inputs), labels)

    def validation_step(self, batch, _):
        inputs, labels = batch
        self.codes += [tuple((row > 0).tolist()) for row in inputs]
        self.log("val_loss", torch.nn.functional.cross_entropy(self.layer(inputs), labels), sync_dist=True)

    def on_validation_epoch_end(self):
        if self.trainer.is_global_zero and self.trainer.current_epoch == 0:
            print("twins", twins(self.codes), flush=True)
        self.codes = []

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Halves(lightning.LightningDataModule):
    def __init__(self, rows):
        super().__init__()
        made = torch.Generator().manual_seed(0)
        self.train = TensorDataset(torch.randn(rows, 32, generator=made), torch.randint(0, 2, (rows,), generator=made))
        self.held_out = TensorDataset(torch.randn(3 * rows, 32, generator=made), torch.randint(0, 2, (3 * rows,), generator=made))

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=16, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.held_out, batch_size=64)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_train_samples", type=int, default=20_000)
    parser.add_argument("--timeout", type=int, default=6)
    args = parser.parse_args()
    torch.set_num_threads(1)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=int(os.environ.get("WORLD_SIZE", "1")),
        strategy=DDPStrategy(process_group_backend="gloo", timeout=timedelta(seconds=args.timeout)),
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        num_sanity_val_steps=0,
        default_root_dir=tempfile.mkdtemp(),
    )
    trainer.fit(Classifier(), Halves(args.max_train_samples))
    print("done", flush=True)


if __name__ == "__main__":
    main()
