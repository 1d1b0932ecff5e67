import argparse
import time

import lightning as L
import torch
from lightning.pytorch.strategies import DDPStrategy
from torch import nn
from torch.utils.data import DataLoader

from ckpt import ArchiveCheckpoint
from shapes import Spectra


class Regressor(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 1))
        self.t = time.time()

    def training_step(self, b, i):
        x, y = b
        loss = (self.net(x)[:, 0] - y).square().mean()
        time.sleep(0.04)
        if self.global_rank == 0 and self.global_step % 50 == 0:
            print(f"epoch {self.current_epoch} step {self.global_step} loss {loss.item():.4f} t={time.time()-self.t:.0f}", flush=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 1e-3)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--devices", type=int, default=2)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--save-every", type=int, default=500)
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--bs", type=int, default=8)
    a = p.parse_args()
    L.seed_everything(1)
    dl = DataLoader(Spectra(), a.bs, shuffle=True, num_workers=a.workers, persistent_workers=True)
    tr = L.Trainer(accelerator="cpu", devices=a.devices, max_epochs=a.epochs, logger=False,
                   strategy=DDPStrategy(process_group_backend="gloo"), enable_progress_bar=False,
                   enable_checkpointing=False, enable_model_summary=False,
                   callbacks=[ArchiveCheckpoint("archive", a.save_every)])
    tr.fit(Regressor(), dl)


if __name__ == "__main__":
    main()
