"""Plain training with loader workers. Nothing in it is wrong."""

from kit import Trainer, connect, make_batch, options, start
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self, seed):
        self.seed = seed

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        return make_batch(self.seed, 1)[0]


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step, batch in enumerate(DataLoader(Samples(args.seed), batch_size=8, num_workers=2, persistent_workers=True)):
        trainer.train_step(step, batch)


if __name__ == "__main__":
    start(main, options())
