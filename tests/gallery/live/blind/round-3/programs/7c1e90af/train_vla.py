import argparse
import logging
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from tracking.client import Run

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("train")


class Policy(nn.Module):
    def __init__(self, obs=48, act=7, width=96):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.head = nn.Linear(width, act)

    def forward(self, x):
        return self.head(self.body(x))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--max-steps", type=int, default=1000)
    p.add_argument("--log-every", type=int, default=10)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)

    run = None
    if rank == 0:
        for attempt in range(20):
            try:
                run = Run("starvla-cotrain", vars(args))
                break
            except OSError:
                time.sleep(1)
    dist.barrier()

    model = DDP(Policy())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(1, args.max_steps + 1):
        obs, act = torch.randn(16, 48), torch.randn(16, 7)
        loss = (model(obs) - act).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.1)
        if step % args.log_every == 0:
            if rank == 0:
                run.log({"loss": loss.item()}, step=step)
            log.info("step %d loss %.4f", step, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
