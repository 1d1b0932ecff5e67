"""Every rank needs about a second for a step."""

import torch
from kit import Trainer, connect, make_batch, options, start


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        for _ in range(60):
            loss = trainer.model.module(make_batch(args.seed, 32))
            torch.autograd.grad(loss, list(trainer.model.parameters()), allow_unused=True)
        trainer.train_step(step)


if __name__ == "__main__":
    start(main, options())
