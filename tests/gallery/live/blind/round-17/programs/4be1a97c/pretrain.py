import math
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist

from stage import StageWorker


@dataclass
class Config:
    vocab: int = 512
    dim: int = 96
    layers: int = 6
    seq_len: int = 48
    micro_bs: int = 4
    micro_batches: int = 4
    lr: float = 3e-4
    warmup: int = 40
    max_steps: int = 20000
    snapshot_every: int = 90
    out_dir: str = os.environ.get("OUT_DIR", ".")


class ControlPlan:
    """What the driver asks the stages to do before a given step."""

    def __init__(self, cfg):
        self.cfg = cfg

    def requests(self, step):
        cfg, reqs = self.cfg, []
        if step < cfg.warmup:
            reqs.append(("set_lr", cfg.lr * (step + 1) / cfg.warmup))
        elif step % 10 == 0:
            t = (step - cfg.warmup) / (cfg.max_steps - cfg.warmup)
            reqs.append(("set_lr", cfg.lr * 0.5 * (1 + math.cos(math.pi * t))))
        if step and step % cfg.snapshot_every == 0:
            reqs.append(("snapshot", f"step{step:06d}"))
        return reqs


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    cfg = Config()
    worker = StageWorker(cfg, source=ControlPlan(cfg) if dist.get_rank() == 0 else None)
    n = sum(p.numel() for p in worker.model.parameters())
    print(f"stage {dist.get_rank()}: {n / 1e6:.2f}M parameters", flush=True)
    worker.loop()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
