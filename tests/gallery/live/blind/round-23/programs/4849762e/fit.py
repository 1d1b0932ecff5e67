import logging
import tempfile
import time
from datetime import timedelta

import lightning as L
import torch
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader, Dataset

from clipping import ClippedMeanState, clipped_mean_hook

logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)


class Waves(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, i):
        t = torch.linspace(0, 6.28, 64)
        return torch.sin(t * (1 + i % 5)) + 0.1 * torch.cos(t * i), torch.tensor(i % 5)


class Residual(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.lin = torch.nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        return x + torch.tanh(self.lin(x))


class WaveClassifier(L.LightningModule):
    def __init__(self, depth=8, clip_after=60):
        super().__init__()
        self.clip_after = clip_after
        self.body = torch.nn.Sequential(*[Residual(64) for _ in range(depth)])
        self.head = torch.nn.Linear(64, 5)

    def on_train_start(self):
        self.trainer.strategy.model.register_comm_hook(ClippedMeanState(self.clip_after), clipped_mean_hook)

    def training_step(self, batch, batch_idx):
        x, y = batch
        time.sleep(0.12)
        loss = torch.nn.functional.cross_entropy(self.head(self.body(x)), y)
        if self.global_step % 10 == 0 and self.global_rank == 0:
            print(f"step {self.global_step} loss {loss.item():.4f}", flush=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    L.seed_everything(5, verbose=False)
    strategy = DDPStrategy(process_group_backend="gloo", timeout=timedelta(minutes=60), bucket_cap_mb=0.01,
                           start_method="popen")
    trainer = L.Trainer(accelerator="cpu", devices=2, strategy=strategy, max_epochs=1000, logger=False,
                        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                        default_root_dir=tempfile.gettempdir())
    trainer.fit(WaveClassifier(), DataLoader(Waves(), batch_size=16, num_workers=0, shuffle=True))


if __name__ == "__main__":
    main()
