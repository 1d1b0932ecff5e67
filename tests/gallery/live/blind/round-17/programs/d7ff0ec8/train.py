import argparse
import logging
import warnings

import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

from ddpm import POINTS, PointCloudDDPM

warnings.filterwarnings("ignore", ".*does not have many workers.*")


class EpochLogger(pl.Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        if trainer.is_global_zero:
            metrics = {k: round(float(v), 4) for k, v in trainer.callback_metrics.items()}
            print(f"epoch {trainer.current_epoch} step {trainer.global_step} {metrics}", flush=True)


def clouds(n, seed):
    gen = torch.Generator().manual_seed(seed)
    points = torch.randn(n, POINTS, 3, generator=gen)
    return TensorDataset((points / points.norm(dim=-1, keepdim=True)).flatten(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--sample-every", type=int, default=3)
    args = parser.parse_args()

    torch.set_num_threads(1)
    pl.seed_everything(7, verbose=False)
    logging.getLogger("lightning.pytorch").setLevel(logging.INFO)
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=args.devices,
        strategy="ddp",
        max_epochs=args.epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        callbacks=[EpochLogger()],
    )
    trainer.fit(
        PointCloudDDPM(sample_every=args.sample_every),
        DataLoader(clouds(6000, 0), batch_size=32, shuffle=True),
        DataLoader(clouds(1200, 1), batch_size=64),
    )


if __name__ == "__main__":
    main()
