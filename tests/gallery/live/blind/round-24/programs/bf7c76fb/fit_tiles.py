import time
from datetime import timedelta

import lightning as L
import torch
import torch.nn as nn
from lightning.pytorch.strategies import DDPStrategy

from tile_data import TileModule


class TileRegressor(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 1))

    def training_step(self, batch, batch_idx):
        tiles, target = batch
        time.sleep(0.15)
        return (self.net(tiles).squeeze(-1) - target).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class WarmerSupervisor(L.Callback):
    """Restarts the warmer ahead of the readers once it has fallen behind them."""

    def __init__(self, max_lag=8, ahead=12):
        self.max_lag = max_lag
        self.ahead = ahead

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        warmer = trainer.datamodule.warmer
        consumed = (batch_idx + 1) * 2
        warmer.consumed.value = consumed
        if consumed - warmer.position.value > self.max_lag:
            warmer.restart(at=consumed + self.ahead)
            print(f"[rank {trainer.global_rank}] tile warmer restarted at {consumed + self.ahead}", flush=True)
        if trainer.is_global_zero and batch_idx % 10 == 0:
            print(f"batch {batch_idx} loss {outputs['loss'].item():.4f}", flush=True)


def main():
    L.seed_everything(1)
    trainer = L.Trainer(accelerator="cpu", devices=2, max_epochs=5, logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False,
                        callbacks=[WarmerSupervisor()],
                        strategy=DDPStrategy(process_group_backend="gloo", timeout=timedelta(minutes=45)))
    trainer.fit(TileRegressor(), datamodule=TileModule())


if __name__ == "__main__":
    main()
