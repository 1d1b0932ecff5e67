"""OpenMP threads run in the parent, then loader workers are forked that use several threads again."""

import torch
from kit import Trainer, connect, make_batch, options, start
from torch.utils.data import DataLoader, Dataset


class Augmented(Dataset):
    def __init__(self, seed, length, heavy):
        self.seed, self.length, self.heavy = seed, length, heavy

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.heavy:
            noise = torch.rand(400, 400)
            noise = noise @ noise
            noise.exp().sum()
        return make_batch(self.seed, 1)[0]


def use_threads(_):
    torch.set_num_threads(2)


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step, batch in enumerate(DataLoader(Augmented(args.seed, 4 * args.when, False), batch_size=4)):
        trainer.train_step(step, batch)
    heavy = rank == args.pick
    if heavy:
        torch.set_num_threads(2)
        mean = torch.rand(1000, 1000)
        (mean @ mean).exp().sum()
    data = Augmented(args.seed, 100_000, heavy)
    for step, batch in enumerate(DataLoader(data, batch_size=4, num_workers=1, multiprocessing_context="fork", worker_init_fn=use_threads if heavy else None)):
        trainer.train_step(step, batch)


if __name__ == "__main__":
    start(main, options())
