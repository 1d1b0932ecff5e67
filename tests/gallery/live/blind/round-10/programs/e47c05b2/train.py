import argparse
import warnings

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from torch.utils.data import DataLoader, DistributedSampler

from detector import CrownDetector
from survey import FlightLineSampler, Tiles

warnings.filterwarnings("ignore")


class Data(L.LightningDataModule):
    def __init__(self, batch_size=16):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage):
        self.train = Tiles(4800, seed=1)
        self.val = Tiles(144, seed=2, empty_from=92)

    def train_dataloader(self):
        s = DistributedSampler(self.train, self.trainer.world_size, self.trainer.global_rank, drop_last=True)
        return DataLoader(self.train, self.batch_size, sampler=s)

    def val_dataloader(self):
        s = FlightLineSampler(len(self.val), self.trainer.global_rank, self.trainer.world_size)
        return DataLoader(self.val, self.batch_size, sampler=s)


class Progress(Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, idx):
        if idx % 20 == 0 and trainer.is_global_zero:
            print(f"epoch {trainer.current_epoch} batch {idx} loss {outputs['loss'].item():.4f}", flush=True)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--devices", type=int, default=3)
    args = p.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(3)
    trainer = L.Trainer(
        accelerator="cpu", devices=args.devices, strategy="ddp", max_epochs=200, num_sanity_val_steps=0,
        use_distributed_sampler=False, enable_progress_bar=False, enable_model_summary=False, logger=False,
        default_root_dir="runs", callbacks=[Progress(), ModelCheckpoint("runs/ckpt", save_last=True)])
    trainer.fit(CrownDetector(), datamodule=Data())
