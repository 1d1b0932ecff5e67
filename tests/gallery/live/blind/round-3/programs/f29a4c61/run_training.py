import argparse

import torch.multiprocessing as mp

from ltr.trainer import run

if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--port", type=int, required=True)
    p.add_argument("--world", type=int, default=2)
    p.add_argument("--epochs", type=int, default=400)
    a = p.parse_args()
    mp.spawn(run, args=(a.world, a.port, a.epochs), nprocs=a.world)
