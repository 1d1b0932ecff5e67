import argparse
import os
import tempfile
from datetime import timedelta

import lightning as L
import torch
from lightning.pytorch.strategies import DDPStrategy

from cuts import make_loader, write_cut_shards
from model import AsrModule


class CutsData(L.LightningDataModule):
    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def train_dataloader(self):
        return make_loader(self.folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--warmup-steps", type=int, default=100)
    parser.add_argument("--max-steps", type=int, default=1000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if "CUTS_DIR" not in os.environ:
        os.environ["CUTS_DIR"] = tempfile.mkdtemp(prefix="cuts-")
        write_cut_shards(os.environ["CUTS_DIR"])
    trainer = L.Trainer(accelerator="cpu", devices=args.devices, max_steps=args.max_steps,
                        strategy=DDPStrategy(process_group_backend="gloo", timeout=timedelta(hours=1)),
                        use_distributed_sampler=False, logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=1.0)
    trainer.fit(AsrModule(args.warmup_steps), datamodule=CutsData(os.environ["CUTS_DIR"]))


if __name__ == "__main__":
    main()
