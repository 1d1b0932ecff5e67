import argparse
import os
import tempfile

import torch.multiprocessing as mp

from engine import run


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--world-size", type=int, default=3)
    p.add_argument("--epochs", type=int, default=200)
    p.add_argument("--steps-per-epoch", type=int, default=80)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--eval-from", type=int, default=2)
    return p.parse_args()


if __name__ == "__main__":
    args = parse()
    args.init_dir = tempfile.mkdtemp(prefix="ddp_init_")
    args.init_method = "file://" + os.path.join(args.init_dir, "sharedfile")
    mp.spawn(run, args=(args,), nprocs=args.world_size, join=True)
