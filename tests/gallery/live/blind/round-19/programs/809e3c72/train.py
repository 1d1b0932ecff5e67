import argparse
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from ckpt import Checkpointer


class VAE(nn.Module):
    def __init__(self, d=256, z=16):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, 512), nn.SiLU(), nn.Linear(512, 2 * z))
        self.dec = nn.Sequential(nn.Linear(z, 512), nn.SiLU(), nn.Linear(512, d))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, 1)
        r = self.dec(mu + torch.randn_like(mu) * (0.5 * logvar).exp())
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
        return F.mse_loss(r, x, reduction="sum") / len(x) + 0.5 * kl


class Heartbeat(threading.Thread):
    def __init__(self, store, rank, period=15.0):
        super().__init__(name="heartbeat", daemon=True)
        self.store, self.rank, self.period = store, rank, period
        self.step = 0
        self.stop = threading.Event()

    def run(self):
        while not self.stop.wait(self.period):
            self.store.set(f"beat/{self.rank}", f"{self.step} {time.time():.0f}")


def batch(n, d, basis):
    return torch.tanh(torch.randn(n, basis.size(0)) @ basis)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", required=True)
    ap.add_argument("--steps", type=int, default=10_000_000)
    ap.add_argument("--save-every", type=int, default=500)
    ap.add_argument("--eval-every", type=int, default=600)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(hours=2))
    rank = dist.get_rank()
    torch.manual_seed(0)
    basis = torch.randn(12, 256) / 3
    model = DDP(VAE())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    ckpt = Checkpointer(args.out)
    beat = Heartbeat(dist.distributed_c10d._get_default_store(), rank)
    beat.start()
    torch.manual_seed(50 + rank)

    t0 = time.time()
    for step in range(1, args.steps + 1):
        beat.step = step
        loss = model(batch(128, 256, basis))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0 and rank == 0:
            print(f"step {step} elbo {-loss.item():.2f} {(time.time() - t0) * 10:.0f} ms/step", flush=True)
            t0 = time.time()
        if step % args.save_every == 0:
            ckpt.save(step, model, opt)
        if step % args.eval_every == 0:
            model.eval()
            with torch.no_grad():
                total = sum(model.module(batch(256, 256, basis)) for _ in range(150)) / 150
            dist.all_reduce(total)
            model.train()
            if rank == 0:
                print(f"step {step} eval elbo {-total.item() / dist.get_world_size():.2f}", flush=True)
    ckpt.wait()
    beat.stop.set()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
