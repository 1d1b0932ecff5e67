import argparse

import torch.distributed as dist

from brain import G2PBrain
from counter import EpochCounterWithStopper


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--max-epochs", type=int, default=50)
    p.add_argument("--patience", type=int, default=2)
    p.add_argument("--steps", type=int, default=15)
    p.add_argument("--lr", type=float, default=0.01)
    args = p.parse_args()
    dist.init_process_group("gloo")
    brain = G2PBrain(args.lr)
    brain.fit(EpochCounterWithStopper(args.max_epochs, args.patience, 0.05), args.steps)
    print("test loss", brain.evaluate())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
