import argparse
import logging
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

from checkpoints import CheckpointStore


class VAE(nn.Module):
    def __init__(self, dim=256, hidden=256, z=16):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(dim, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.mu, self.logvar = nn.Linear(hidden, z), nn.Linear(hidden, z)
        self.dec = nn.Sequential(nn.Linear(z, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(),
                                 nn.Linear(hidden, dim))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        y = self.dec(mu + torch.randn_like(mu) * (0.5 * logvar).exp())
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(-1).mean()
        return F.mse_loss(y, x) + 1e-3 * kl


def make_data(n, dim=256):
    g = torch.Generator().manual_seed(4)
    basis = torch.randn(8, dim, generator=g)
    return TensorDataset(torch.tanh(torch.randn(n, 8, generator=g) @ basis) + 0.05 * torch.randn(n, dim, generator=g))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--output-dir", default="output")
    p.add_argument("--batch-size", type=int, default=128)
    p.add_argument("--save-every", type=int, default=40)
    p.add_argument("--max-steps", type=int, default=200000)
    args = p.parse_args()

    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    logging.basicConfig(level=logging.INFO if accelerator.is_main_process else logging.ERROR,
                        format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logger = logging.getLogger("vae")
    set_seed(17, device_specific=True)

    model = VAE()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(make_data(24000), args.batch_size, shuffle=True, drop_last=True)
    model, opt, loader = accelerator.prepare(model, opt, loader)
    store = CheckpointStore(accelerator, args.output_dir)

    step, t0 = 0, time.time()
    while step < args.max_steps:
        for (x,) in loader:
            loss = model(x)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
            step += 1
            if step % 25 == 0:
                mean = accelerator.reduce(loss.detach(), "mean").item()
                logger.info("step %d loss %.4f %.1f it/s", step, mean, 25 / (time.time() - t0))
                t0 = time.time()
            if step % args.save_every == 0:
                store.save(step, model, opt)
                logger.info("checkpoint %d", step)


if __name__ == "__main__":
    main()
