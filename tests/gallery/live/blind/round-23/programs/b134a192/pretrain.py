import argparse
import json
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from domains import DomainLedger, Mixture


def build_model():
    torch.manual_seed(7)
    return torch.nn.Sequential(
        torch.nn.Linear(48, 96), torch.nn.GELU(),
        torch.nn.Linear(96, 96), torch.nn.GELU(),
        torch.nn.Linear(96, 2),
    )


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--mix", required=True)
    ap.add_argument("--steps", type=int, default=50000)
    ap.add_argument("--lr", type=float, default=3e-3)
    args = ap.parse_args()
    with open(args.mix) as f:
        config = json.load(f)

    dist.init_process_group("gloo", timeout=timedelta(minutes=40))
    rank = dist.get_rank()
    ledger = DomainLedger(config["tracked"])
    mixture = Mixture(config, rank)
    model = DDP(build_model())
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.steps)

    for step in range(args.steps):
        names, ids, x, y = mixture.draw(step)
        time.sleep(0.18)
        losses = F.cross_entropy(model(x), y, reduction="none")
        opt.zero_grad()
        losses.mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        for i, name in enumerate(names):
            ledger.add(name, losses.detach()[ids == i])
        if (step + 1) % config["report_every"] == 0:
            report = ledger.reduce(names)
            if rank == 0:
                line = " ".join(f"{k}={v:.3f}" for k, v in sorted(report.items()))
                print(f"step {step + 1} lr {sched.get_last_lr()[0]:.2e} {line}", flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
