import argparse
import logging
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from engine.logger import setup_logger
from engine.metrics import MetricsStore

logger = logging.getLogger("train_net")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--output", default="out")
    p.add_argument("--max-iter", type=int, default=90000)
    a = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    store = MetricsStore(os.path.join(a.output, "metrics.json")) if rank == 0 else None
    setup_logger(rank, store)
    backbone = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                             nn.Linear(8, 20))
    model = DDP(backbone)
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for it in range(a.max_iter):
        t0 = time.perf_counter()
        img, label = torch.randn(4, 3, 64, 64), torch.randint(0, 20, (4,))
        loss = nn.functional.cross_entropy(model(img), label)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if store is not None:
            store.add("scalar", iter=it, loss=loss.item())
        time.sleep(0.1)
        logger.info("iter: %d  total_loss: %.3f  time: %.4f", it, loss.item(), time.perf_counter() - t0)


if __name__ == "__main__":
    main()
