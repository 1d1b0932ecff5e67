"""Every rank computes with far more threads than there are CPUs."""

import torch
from kit import Trainer, connect, options, start


def main(args):
    rank, _ = connect(args)
    torch.set_num_threads(16)
    trainer = Trainer(args, rank)
    weights = torch.rand(1200, 1200)
    for step in range(args.steps):
        if step > 2:
            weights = (weights @ weights).softmax(1)
        trainer.train_step(step)


if __name__ == "__main__":
    start(main, options())
