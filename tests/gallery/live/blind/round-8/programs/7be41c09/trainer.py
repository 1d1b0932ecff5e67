import os
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from model import SparseCoder


@dataclass
class TrainConfig:
    d_in: int = 48
    width: int = 384
    k: int = 8
    batch_size: int = 64
    lr: float = 1e-3
    steps: int = 20000
    save_every: int = 60
    log_every: int = 10
    run_dir: str = "runs/sae"


class SaeTrainer:
    def __init__(self, cfg, stream):
        self.cfg = cfg
        self.stream = stream
        self.rank = dist.get_rank()
        self.saes = {f"layers.{i}": SparseCoder(cfg.d_in, cfg.width, cfg.k) for i in range(2)}
        self.wrapped = {name: DDP(sae) for name, sae in self.saes.items()}
        params = [p for w in self.wrapped.values() for p in w.parameters()]
        self.opt = torch.optim.Adam(params, lr=cfg.lr)
        self.fired = {name: torch.zeros(cfg.width) for name in self.saes}

    def log(self, msg):
        if self.rank == 0:
            print(f"[{time.strftime('%H:%M:%S')}] {msg}", flush=True)

    def fit(self):
        start = time.time()
        for step in range(1, self.cfg.steps + 1):
            hidden = next(self.stream)
            losses = {}
            self.opt.zero_grad()
            for name, wrapped in self.wrapped.items():
                _, fvu = wrapped(hidden[name])
                fvu.backward()
                losses[name] = fvu.detach()
            torch.nn.utils.clip_grad_norm_([p for w in self.wrapped.values() for p in w.parameters()], 1.0)
            self.opt.step()
            if step % self.cfg.log_every == 0:
                for value in losses.values():
                    dist.all_reduce(value)
                shown = " ".join(f"{k}={v.item() / dist.get_world_size():.4f}" for k, v in losses.items())
                self.log(f"step {step} fvu {shown} ({step / (time.time() - start):.1f} it/s)")
            if step % self.cfg.save_every == 0:
                self.save(step)
        self.save(self.cfg.steps)

    def save(self, step):
        """Write every coder of this run below the run folder."""
        if self.rank != 0:
            return
        for name, sae in self.saes.items():
            folder = os.path.join(self.cfg.run_dir, name)
            os.makedirs(folder, exist_ok=True)
            torch.save({"step": step, "state": sae.state_dict()}, os.path.join(folder, "sae.pt"))
        self.log(f"saved {len(self.saes)} coders to {self.cfg.run_dir}")
        dist.barrier()
