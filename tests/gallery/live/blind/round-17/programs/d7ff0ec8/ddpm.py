import math

import lightning.pytorch as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.utilities import rank_zero_info, rank_zero_only
from torchmetrics import MeanMetric, MetricCollection

POINTS = 24


class Denoiser(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.inp = nn.Linear(3 * POINTS, dim)
        self.mid = nn.ModuleList(nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim), nn.SiLU()) for _ in range(4))
        self.out = nn.Linear(dim, 3 * POINTS)

    def forward(self, x, t):
        freqs = torch.exp(-math.log(1000.0) * torch.arange(8, device=x.device) / 8)
        angles = t[:, None] * freqs[None]
        h = self.inp(x) + self.time(torch.cat([angles.sin(), angles.cos()], dim=1))
        for block in self.mid:
            h = h + block(h)
        return self.out(h)


class PointCloudDDPM(pl.LightningModule):
    def __init__(self, timesteps=50, lr=1e-3, sample_every=3, num_samples=64):
        super().__init__()
        self.save_hyperparameters()
        self.net = Denoiser()
        betas = torch.linspace(1e-4, 0.05, timesteps)
        self.register_buffer("betas", betas)
        self.register_buffer("alpha_bar", torch.cumprod(1 - betas, dim=0))
        self.val_nll = MeanMetric()
        self.sampling_metrics = MetricCollection({"radius": MeanMetric(), "stability": MeanMetric()})

    def noise_loss(self, x):
        t = torch.randint(0, self.hparams.timesteps, (len(x),), device=x.device)
        noise = torch.randn_like(x)
        ab = self.alpha_bar[t][:, None]
        return F.mse_loss(self.net(ab.sqrt() * x + (1 - ab).sqrt() * noise, t.float()), noise)

    def training_step(self, batch, batch_idx):
        loss = self.noise_loss(batch[0])
        self.log("train/loss", loss, prog_bar=False)
        return loss

    def validation_step(self, batch, batch_idx):
        self.val_nll.update(self.noise_loss(batch[0]))

    def on_validation_epoch_end(self):
        self.log("val/nll", self.val_nll.compute())
        self.val_nll.reset()
        if self.trainer.sanity_checking:
            return
        if (self.current_epoch + 1) % self.hparams.sample_every == 0:
            self.evaluate_sampling()

    @torch.no_grad()
    def sample(self, n):
        x = torch.randn(n, 3 * POINTS, device=self.device)
        for t in reversed(range(self.hparams.timesteps)):
            beta, ab = self.betas[t], self.alpha_bar[t]
            eps = self.net(x, torch.full((n,), float(t), device=self.device))
            x = (x - beta / (1 - ab).sqrt() * eps) / (1 - beta).sqrt()
            if t > 0:
                x = x + beta.sqrt() * torch.randn_like(x)
        return x

    @rank_zero_only
    def evaluate_sampling(self):
        points = self.sample(self.hparams.num_samples).view(-1, POINTS, 3)
        radius = points.norm(dim=-1)
        self.sampling_metrics["radius"].update(radius)
        self.sampling_metrics["stability"].update(((radius > 0.5) & (radius < 1.5)).float())
        results = self.sampling_metrics.compute()
        self.sampling_metrics.reset()
        rank_zero_info(
            f"epoch {self.current_epoch}: sampled {len(points)} clouds, "
            f"radius {results['radius']:.3f} stability {results['stability']:.3f}"
        )

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
