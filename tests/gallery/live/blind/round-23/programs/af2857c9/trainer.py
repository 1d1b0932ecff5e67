import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from checkpoint import Checkpointer


class Trainer:
    def __init__(self, out, save_every=30, eval_every=45):
        dist.init_process_group("gloo", timeout=timedelta(minutes=30))
        self.rank = dist.get_rank()
        torch.manual_seed(2)
        self.model = DDP(nn.Sequential(nn.Linear(32, 96), nn.SiLU(), nn.Linear(96, 32)))
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.ckpt = Checkpointer(out)
        self.save_every, self.eval_every = save_every, eval_every
        self.gen = torch.Generator().manual_seed(self.rank)
        self.state = {"step": 0, "best_eval": None, "lr": 1e-3}

    def batch(self, n=16):
        x = torch.randn(n, 32, generator=self.gen)
        return x, torch.roll(x, 1, dims=1).abs()

    def evaluate(self):
        losses = []
        with torch.no_grad():
            for _ in range(8):
                x, y = self.batch()
                losses.append(F.mse_loss(self.model.module(x), y))
                time.sleep(0.05)
        total = torch.stack(losses).mean()
        dist.all_reduce(total)
        total /= dist.get_world_size()
        best = self.state["best_eval"]
        if best is None or total < best:
            self.state["best_eval"] = total
        if self.rank == 0:
            print(f"eval at {self.state['step']}: {total:.4f}", flush=True)

    def fit(self, steps=50000):
        for step in range(1, steps + 1):
            x, y = self.batch()
            loss = F.mse_loss(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            time.sleep(0.12)
            self.state["step"] = step
            if self.rank == 0 and step % 15 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            if step % self.eval_every == 0:
                self.evaluate()
            if step % self.save_every == 0:
                self.ckpt.save(f"step{step}", self.model, self.opt, dict(self.state))
        dist.destroy_process_group()
