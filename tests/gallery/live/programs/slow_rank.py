"""Each step costs one rank several times what it costs the others."""

import time

import torch
from kit import Trainer, connect, make_batch, options, start


def augment(batch, rounds):
    total = 0.0
    for _ in range(rounds):
        total += float(torch.fft.fft2(torch.rand(128, 128)).abs().mean())
        time.sleep(0.002)
    return batch


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        batch = augment(make_batch(args.seed), 150 if rank == args.pick and step > 2 else 2)
        trainer.train_step(step, batch)


if __name__ == "__main__":
    start(main, options())
