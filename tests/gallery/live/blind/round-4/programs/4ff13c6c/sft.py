import argparse
import logging

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from collate import PackedBatches


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dim", type=int, default=128)
    ap.add_argument("--log-level", default="info")
    a = ap.parse_args()
    logging.basicConfig(level=a.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    log = logging.getLogger("sft")
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.EmbeddingBag(4000, a.dim), nn.Linear(a.dim, a.dim), nn.ReLU(), nn.Linear(a.dim, 4000)))
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    print(f"rank {rank} ready")
    for step, (x, y) in enumerate(PackedBatches(rank)):
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        gn = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        log.debug("step=%d loss=%.5f grad_norm=%.4f", step, loss.item(), gn)
        if rank == 0 and step % 50 == 0:
            print(f"{{'loss': {loss.item():.4f}, 'step': {step}}}")


if __name__ == "__main__":
    main()
