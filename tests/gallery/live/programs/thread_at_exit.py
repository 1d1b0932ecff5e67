"""Training ends well; on one rank a non-daemon thread keeps the interpreter from ending."""

import threading

import torch.distributed as dist
from kit import Trainer, connect, options, start


class Uploader(threading.Thread):
    def __init__(self):
        super().__init__()
        self.wanted = threading.Condition()

    def run(self):
        with self.wanted:
            self.wanted.wait()


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    if rank == args.pick:
        Uploader().start()
    for step in range(args.when + 1):
        trainer.train_step(step)
    dist.destroy_process_group()


if __name__ == "__main__":
    start(main, options())
