import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import LearningRateMonitor
from torch.utils.data import DataLoader, Dataset

from tracking import TrackingLogger


class Waves(Dataset):
    def __init__(self, n=60000, length=128):
        self.n, self.length = n, length

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        f = 1 + i % 8
        t = torch.linspace(0, 6.28, self.length)
        return torch.sin(f * t + torch.rand(1, generator=g)) + 0.3 * torch.randn(self.length, generator=g), i % 8


class WaveNet(L.LightningModule):
    def __init__(self, width=32, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.conv = nn.Sequential(
            nn.Conv1d(1, width, 5, padding=2), nn.ReLU(),
            nn.Conv1d(width, width, 5, padding=2, stride=2), nn.ReLU(),
            nn.Conv1d(width, 2 * width, 5, padding=2, stride=2), nn.ReLU(),
        )
        self.head = nn.Linear(2 * width, 8)

    def forward(self, x):
        return self.head(self.conv(x[:, None]).mean(-1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        self.log("train/loss", loss, prog_bar=True)
        self.log("train/acc", (logits.argmax(1) == y).float().mean())
        if batch_idx % 20 == 0:
            self.print(f"epoch {self.current_epoch} step {batch_idx} loss {loss.item():.4f}")
        return loss

    def on_before_optimizer_step(self, optimizer):
        norm = torch.stack([p.grad.norm() for p in self.parameters() if p.grad is not None]).norm()
        self.log("train/grad_norm", norm)

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 5000)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "step"}}


if __name__ == "__main__":
    torch.set_num_threads(1)
    L.seed_everything(3)
    trainer = L.Trainer(
        accelerator="cpu", devices=3, strategy="ddp", max_epochs=50,
        log_every_n_steps=1, logger=TrackingLogger("waves"), enable_checkpointing=False,
        callbacks=[LearningRateMonitor("step")],
    )
    trainer.fit(WaveNet(), DataLoader(Waves(), batch_size=16, shuffle=True))
