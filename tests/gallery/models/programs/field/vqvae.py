"""A vector-quantised autoencoder; the codebook is an average of what it is used for."""
import torch
import torch.nn.functional as F
from torch import nn


class Quantizer(nn.Module):
    def __init__(self, codes=16, dim=8, decay=0.99):
        super().__init__()
        self.decay = decay
        embed = torch.randn(codes, dim)
        self.register_buffer("embed", embed)
        self.register_buffer("cluster_size", torch.ones(codes))
        self.register_buffer("embed_avg", embed.clone())

    def forward(self, x):
        flat = x.permute(0, 2, 3, 1).reshape(-1, x.shape[1])
        dist = torch.cdist(flat.float(), self.embed.float())
        idx = dist.argmin(1)
        if self.training:
            with torch.no_grad():
                one_hot = F.one_hot(idx, self.embed.shape[0]).to(self.embed.dtype)
                self.cluster_size.mul_(self.decay).add_(one_hot.sum(0), alpha=1 - self.decay)
                self.embed_avg.mul_(self.decay).add_(
                    one_hot.t() @ flat.to(self.embed.dtype), alpha=1 - self.decay
                )
                self.embed.copy_(self.embed_avg / (self.cluster_size[:, None] + 1e-5))
        q = F.embedding(idx, self.embed).to(x.dtype)
        q = q.view(x.shape[0], x.shape[2], x.shape[3], -1).permute(0, 3, 1, 2)
        loss = F.mse_loss(x, q.detach())
        return x + (q - x).detach(), loss


class VQVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(3, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 8, 4, 2, 1))
        self.quantizer = Quantizer()
        self.dec = nn.Sequential(
            nn.ConvTranspose2d(8, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1)
        )

    def forward(self, images):
        q, commit = self.quantizer(self.enc(images))
        recon = self.dec(q)
        return F.mse_loss(recon, images) + 0.25 * commit, recon


def build():
    return VQVAE()


def images(rows):
    return torch.randn(rows, 3, 16, 16)
