"""A loader worker asks a sample cache over TCP and waits for the reply."""

import socket

from kit import Trainer, connect, make_batch, options, start
from torch.utils.data import DataLoader, Dataset


class Cached(Dataset):
    def __init__(self, seed, server, cold):
        self.seed, self.server, self.cold = seed, server, cold

    def __len__(self):
        return 100_000

    def fetch(self, index):
        host, port = self.server.split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(b"GET %d\r\n" % index)
            return connection.recv(1 << 16)

    def __getitem__(self, index):
        if index == self.cold:
            self.fetch(index)
        return make_batch(self.seed, 1)[0]


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    data = Cached(args.seed, args.server, 4 * args.when + 5 if rank == args.pick else -1)
    for step, batch in enumerate(DataLoader(data, batch_size=4, num_workers=2, persistent_workers=True)):
        trainer.train_step(step, batch)


if __name__ == "__main__":
    start(main, options(server="127.0.0.1:1"))
