import time
from datetime import timedelta

import lightning.pytorch as pl
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader, Dataset

from metric_sink import MetricSink


class LoadCurves(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 48, generator=g).cumsum(1)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        time.sleep(0.15 if i % 97 == 0 else 0.004)
        return self.x[i, :36], self.x[i, 36:]


class Forecaster(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(36, 64), torch.nn.ReLU(), torch.nn.Linear(64, 12))

    def training_step(self, batch, _):
        x, y = batch
        time.sleep(0.1)
        return {"loss": F.smooth_l1_loss(self.net(x), y)}

    def validation_step(self, batch, idx):
        x, y = batch
        # backtest with a rolling origin; curves differ in length between batches
        for k in range(4 + (idx * 7 + self.global_rank * 3) % 5):
            self.net(x.roll(k, 1))
            time.sleep(0.09)
        self.log("val_mae", (self.net(x) - y).abs().mean(), sync_dist=True, on_epoch=True)

    def on_validation_epoch_end(self):
        if self.trainer.is_global_zero:
            time.sleep(6)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def loader(n, seed, shuffle):
    return DataLoader(LoadCurves(n, seed), batch_size=8, shuffle=shuffle, num_workers=1,
                      persistent_workers=True, multiprocessing_context="fork")


if __name__ == "__main__":
    import tempfile
    torch.set_num_threads(1)
    pl.seed_everything(9)
    trainer = pl.Trainer(
        accelerator="cpu", devices=2, max_epochs=500, logger=False, num_sanity_val_steps=0,
        enable_progress_bar=False, enable_model_summary=False,
        strategy=DDPStrategy(process_group_backend="gloo", timeout=timedelta(minutes=10)),
        callbacks=[MetricSink(), ModelCheckpoint(dirpath=tempfile.mkdtemp(prefix="fc-"), monitor="val_mae", save_top_k=2)])
    trainer.fit(Forecaster(), loader(1200, 0, True), loader(480, 1, False))
