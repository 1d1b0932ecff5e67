import lightning as L
import torch
from lightning.pytorch.loggers import CSVLogger

from datamodule import Signals
from module import Classifier


def main():
    torch.set_num_threads(1)
    L.seed_everything(1, verbose=False)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=4,
        strategy="ddp",
        max_epochs=60,
        num_sanity_val_steps=0,
        logger=CSVLogger("logs"),
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=20,
    )
    trainer.fit(Classifier(), datamodule=Signals())
    trainer.save_checkpoint("final.ckpt")


if __name__ == "__main__":
    main()
