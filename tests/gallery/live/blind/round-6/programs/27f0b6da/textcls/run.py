import argparse
import logging

import torch
import torch.distributed as dist

from .model import BowClassifier
from .reader import ReviewReader
from .trainer import GradientDescentTrainer


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=40)
    ap.add_argument("--patience", type=int, default=None)
    ap.add_argument("--batch-size", type=int, default=32)
    ap.add_argument("--lr", type=float, default=3e-3)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s r{rank} %(message)s")
    torch.manual_seed(3)
    reader = ReviewReader()
    train = reader.read("train", rank, world, 960)
    val = reader.read("validation", rank, world, 320)
    model = torch.nn.parallel.DistributedDataParallel(BowClassifier())
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    metrics = GradientDescentTrainer(model, opt, train, val, args).train()
    if rank == 0:
        logging.info("done %s", metrics)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
