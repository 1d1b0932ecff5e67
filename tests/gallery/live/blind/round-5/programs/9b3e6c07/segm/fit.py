import argparse, os, time, warnings
warnings.filterwarnings("ignore")
import torch, torch.nn as nn
import lightning as L
from torch.utils.data import DataLoader
from data import Tiles


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 1))
        self.t = time.time()

    def training_step(self, x, i):
        return (self.f(x) - x).abs().mean()

    def on_train_batch_end(self, out, batch, i):
        if self.global_rank == 0 and i % 5 == 0:
            print(f"batch {i} {time.time() - self.t:.1f}s", flush=True)
            self.t = time.time()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-3)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--workers", type=int, default=2)
    a = p.parse_args()
    tr = L.Trainer(accelerator="cpu", devices=3, strategy="ddp", max_epochs=-1, logger=False, enable_checkpointing=False,
                   enable_progress_bar=False, enable_model_summary=False)
    tr.fit(Net(), DataLoader(Tiles(), batch_size=32, num_workers=a.workers))
