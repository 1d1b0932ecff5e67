"""Rank 0 downloads a file that arrives steadily; the others wait at a barrier."""

import urllib.request

import torch.distributed as dist
from kit import Trainer, connect, options, start


def download(url, path):
    done = 0
    with urllib.request.urlopen(url) as source, open(path, "wb") as file:
        while piece := source.read(1 << 15):
            file.write(piece)
            file.flush()
            done += len(piece)
            file.seek(done % (32 << 20))
    return done


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.when):
        trainer.train_step(step)
    if rank == args.pick:
        download(f"http://{args.server}/weights.bin", "weights.bin")
    dist.barrier()
    for step in range(args.when, args.steps):
        trainer.train_step(step)


if __name__ == "__main__":
    start(main, options(server="127.0.0.1:1"))
