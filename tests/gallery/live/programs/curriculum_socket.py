"""One rank asks a curriculum server over TCP and gets no answer."""

import socket

from kit import Trainer, connect, options, start


class Curriculum:
    def __init__(self, address):
        host, port = address.split(":")
        self.connection = socket.create_connection((host, int(port)))

    def next_difficulty(self, step):
        self.connection.sendall(f"GET difficulty {step}\n".encode())
        return float(self.connection.recv(64))


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when and rank == args.pick:
            print("difficulty", Curriculum(args.server).next_difficulty(step))


if __name__ == "__main__":
    start(main, options(server="127.0.0.1:1"))
