"""Rank 0 validates over a loader with workers and prints its progress; the others wait for its result."""

import time

import torch
import torch.distributed as dist
from kit import Trainer, connect, make_batch, options, start
from torch.utils.data import DataLoader, Dataset


class Held(Dataset):
    def __init__(self, seed):
        self.seed = seed

    def __len__(self):
        return 400_000

    def __getitem__(self, index):
        time.sleep(0.005)
        return make_batch(self.seed, 1)[0]


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when:
            score = torch.zeros(1)
            if rank == args.pick:
                with torch.no_grad():
                    for number, batch in enumerate(DataLoader(Held(args.seed), batch_size=4, num_workers=2)):
                        score += trainer.model.module(batch)
                        if number % 100 == 0:
                            print(f"validation {number}/100000", flush=True)
            dist.broadcast(score, src=args.pick)


if __name__ == "__main__":
    start(main, options())
