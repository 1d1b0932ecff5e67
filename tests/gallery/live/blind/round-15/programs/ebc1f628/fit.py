import os
import tempfile

import lightning.pytorch as pl
import torch

from callbacks import KeepProgress, Throughput
from task import Tagger


def main():
    torch.set_num_threads(1)
    pl.seed_everything(11)
    folder = os.environ.setdefault("RUN_DIR", tempfile.mkdtemp(prefix="tagger-"))
    trainer = pl.Trainer(accelerator="cpu", devices=3, strategy="ddp", max_epochs=200, logger=False,
                         enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                         default_root_dir=folder, callbacks=[Throughput(), KeepProgress(folder)])
    trainer.fit(Tagger())


if __name__ == "__main__":
    main()
