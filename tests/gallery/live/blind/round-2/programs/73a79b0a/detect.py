import argparse
import logging
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

torch.set_num_threads(1)
logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    args = p.parse_args()
    logging.info("%s: joining process group as rank %s", os.environ["NODE_NAME"], os.environ["RANK"])
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DDP(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(args.epochs):
        for it in range(200):
            loss = model(torch.randn(4, 3, 16, 16)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.1)
        if rank == 0:
            logging.info("epoch %d box loss %.4f", epoch, loss.item())


if __name__ == "__main__":
    main()
