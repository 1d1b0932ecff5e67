import argparse
import logging
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from evaluator import accumulate

logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(message)s", datefmt="%m/%d %H:%M:%S")
logger = logging.getLogger("detectron")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--eval-period", type=int, default=500)
    p.add_argument("--max-iter", type=int, default=90000)
    a = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DDP(nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 12)))
    opt = torch.optim.SGD(model.parameters(), 0.02)
    for it in range(1, a.max_iter + 1):
        x, y = torch.randn(2, 3, 96, 96), torch.randint(0, 12, (2,))
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.1)
        if rank == 0 and it % 20 == 0:
            logger.info("iter: %d total_loss: %.3f", it, loss.item())
        if it % a.eval_period == 0:
            if rank == 0:
                logger.info("Evaluating predictions with unofficial COCO API...")
                ap = accumulate(300, seed=it)
                logger.info("copypaste: AP50,%.4f", ap)
            dist.barrier()


if __name__ == "__main__":
    main()
