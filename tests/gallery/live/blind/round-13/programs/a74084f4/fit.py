import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint, TQDMProgressBar
from lightning.pytorch.loggers import CSVLogger

from data import SensorData
from module import Classifier


def main():
    torch.set_num_threads(1)
    L.seed_everything(11)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=500,
        num_sanity_val_steps=0,
        log_every_n_steps=10,
        logger=CSVLogger("runs", name="sensor"),
        callbacks=[ModelCheckpoint(every_n_epochs=1, save_last=True), TQDMProgressBar(refresh_rate=20)],
    )
    trainer.fit(Classifier(), datamodule=SensorData())


if __name__ == "__main__":
    main()
