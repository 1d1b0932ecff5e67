import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint, TQDMProgressBar
from lightning.pytorch.loggers import CSVLogger

from callbacks import CheckpointPacker, SourceState
from lit import GlyphData, GlyphNet

if __name__ == "__main__":
    torch.set_num_threads(1)
    L.seed_everything(5, workers=True)
    trainer = L.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_epochs=2000, num_sanity_val_steps=0,
        logger=CSVLogger("csv", flush_logs_every_n_steps=50), log_every_n_steps=25,
        callbacks=[
            ModelCheckpoint(monitor="val/loss", save_top_k=2, save_last=True),
            EarlyStopping(monitor="val/loss", patience=100000),
            TQDMProgressBar(refresh_rate=50), CheckpointPacker(), SourceState(),
        ],
    )
    trainer.fit(GlyphNet(), datamodule=GlyphData())
