import argparse

import torch
import torch.distributed as dist

from callbacks import EarlyStoppingCallback
from trainer import Trainer


def load_split(n, seed):
    g = torch.Generator().manual_seed(seed)
    out = []
    for _ in range(n):
        length = int(torch.randint(6, 30, (1,), generator=g))
        x = torch.randn(length, 16, generator=g)
        out.append((x, torch.randint(0, 4, (length,), generator=g)))
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--max-epochs", type=int, default=50)
    p.add_argument("--patience", type=int, default=2)
    args = p.parse_args()
    dist.init_process_group("gloo")
    trainer = Trainer(load_split(60, 1), load_split(30, 2),
                      [EarlyStoppingCallback(args.patience)])
    trainer.train(args.max_epochs)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
