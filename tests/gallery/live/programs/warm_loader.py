"""The loader's workers read an index for a long time before the first batch."""

from kit import Log, Trainer, connect, make_batch, options, start
from torch.utils.data import DataLoader, Dataset


class Indexed(Dataset):
    def __init__(self, seed, rows):
        self.seed, self.rows, self.index = seed, rows, None

    def __len__(self):
        return 100_000

    def read_index(self):
        index = {}
        for row in range(self.rows):
            index[f"{row:012d}"[::-1]] = row
            if len(index) > 500_000:
                index.clear()
        return index

    def __getitem__(self, item):
        if self.index is None:
            self.index = self.read_index()
        return make_batch(self.seed, 1)[0]


def main(args):
    rank, _ = connect(args)
    Log(args, rank).say("reading the index")
    trainer = Trainer(args, rank)
    for step, batch in enumerate(DataLoader(Indexed(args.seed, 2_000_000_000), batch_size=4, num_workers=1)):
        trainer.train_step(step, batch)


if __name__ == "__main__":
    start(main, options())
