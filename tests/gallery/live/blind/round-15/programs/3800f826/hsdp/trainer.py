import math
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.fsdp import fully_shard


class Encoder(nn.Module):
    def __init__(self, dim=128, depth=3, classes=10):
        super().__init__()
        self.stem = nn.Linear(64, dim)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(),
                                                  nn.Linear(4 * dim, dim)) for _ in range(depth))
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.stem(x)
        for b in self.blocks:
            x = x + b(x)
        return self.head(x)


class Trainer:
    def __init__(self, mesh, store, args):
        self.mesh, self.store, self.args = mesh, store, args
        self.rank = dist.get_rank()
        torch.manual_seed(5)
        self.model = Encoder()
        for b in self.model.blocks:
            fully_shard(b, mesh=mesh)
        fully_shard(self.model, mesh=mesh)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.gen = torch.Generator().manual_seed(1000 + self.rank)
        self.teacher = torch.randn(64, 10, generator=torch.Generator().manual_seed(9))
        self.ema = None
        self.last_snapshot = None

    def batch(self, step):
        x = torch.randn(64, 64, generator=self.gen)
        y = (x @ self.teacher).argmax(-1)
        if step % 100 >= 50 and step % 100 < 54:      # a stretch of badly labelled crops in the stream
            y = torch.randint(0, 10, y.shape, generator=self.gen)
        return x, y

    def world_mean(self, value):
        t = value.detach().clone()
        dist.all_reduce(t)
        return (t / dist.get_world_size()).item()

    def fit(self):
        t0 = time.time()
        for step in range(1, self.args.max_steps + 1):
            x, y = self.batch(step)
            loss = F.cross_entropy(self.model(x), y)
            mean = self.world_mean(loss)
            spiking = self.ema is not None and step > 30 and mean > self.args.spike_factor * self.ema
            if spiking and self.last_snapshot is not None:
                if self.rank == 0:
                    print(f"step {step}: loss {mean:.3f} against running mean {self.ema:.3f}, "
                          f"going back to step {self.last_snapshot}", flush=True)
                self.opt.zero_grad()
                self.store.load(self.last_snapshot, self.model, self.opt)
                continue
            loss.backward()
            self.opt.step()
            self.opt.zero_grad()
            self.ema = mean if self.ema is None else 0.95 * self.ema + 0.05 * mean
            if step % self.args.snapshot_every == 0:
                self.store.save(step, self.model, self.opt)
                self.last_snapshot = step
            if step % 20 == 0 and self.rank == 0:
                print(f"step {step} loss {mean:.4f} ema {self.ema:.4f} {(time.time() - t0) / 20 * 1e3:.0f} ms/step", flush=True)
                t0 = time.time()
            if not math.isfinite(mean):
                raise RuntimeError("loss is not finite")
