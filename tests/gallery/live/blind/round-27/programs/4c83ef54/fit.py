import os
import tempfile
import time
import warnings
from datetime import timedelta

import lightning as L
import torch
from lightning.pytorch.strategies import DDPStrategy
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

from dumper import PredictionDumper

warnings.filterwarnings("ignore")
CROWD_IDS = {37, 53}


class Tiles(Dataset):
    def __init__(self, n, offset=0):
        self.n, self.offset = n, offset

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        g = torch.Generator().manual_seed(self.offset + index)
        image = torch.randn(1, 16, 16, generator=g)
        return {
            "id": index,
            "image": image,
            "mask": (image > 0.3).float(),
            "crowd": self.offset > 0 and index in CROWD_IDS,
        }


class TileData(L.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(Tiles(240), batch_size=4, shuffle=True)

    def val_dataloader(self):
        full = Tiles(64, offset=10_000)
        if self.trainer.current_epoch < 2:
            return DataLoader(Subset(full, range(16)), batch_size=2)
        return DataLoader(full, batch_size=2)


class Segmenter(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1)
        )
        self.criterion = nn.BCEWithLogitsLoss()

    def training_step(self, batch, batch_idx):
        loss = self.criterion(self.net(batch["image"]), batch["mask"])
        time.sleep(0.15)
        if batch_idx % 10 == 0 and self.trainer.is_global_zero:
            print(f"epoch {self.current_epoch} batch {batch_idx} loss {loss.item():.4f}", flush=True)
        return loss

    def validation_step(self, batch, batch_idx):
        logits = self.net(batch["image"])
        time.sleep(0.1)
        self.log("val_loss", self.criterion(logits, batch["mask"]), sync_dist=True, on_epoch=True)
        return (logits.sigmoid() > 0.5).squeeze(1).to(torch.uint8).cpu()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


def main():
    folder = os.environ.setdefault("TILE_RUN_DIR", tempfile.mkdtemp(prefix="tiles_"))
    trainer = L.Trainer(
        accelerator="cpu",
        devices=2,
        strategy=DDPStrategy(process_group_backend="gloo", timeout=timedelta(minutes=45)),
        max_epochs=300,
        num_sanity_val_steps=0,
        reload_dataloaders_every_n_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[PredictionDumper(folder)],
    )
    trainer.fit(Segmenter(), datamodule=TileData())


if __name__ == "__main__":
    main()
