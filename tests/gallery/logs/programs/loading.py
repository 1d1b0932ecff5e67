"""Loader workers that meet a bad sample, a crash of native code, an end by signal, or a data set that cannot be pickled."""

import ctypes
import os
import signal

import torch
from kit import Trainer, connect, options, start
from torch.utils.data import DataLoader, Dataset


class Sentences(Dataset):
    def __init__(self, kind, bad):
        self.kind, self.bad = kind, bad
        self.clean = (lambda text: text.strip()) if kind == "lambda" else str.strip

    def __len__(self):
        return 4000

    def __getitem__(self, index):
        length = 20
        if index == self.bad:
            if self.kind == "ragged":
                length = 23
            elif self.kind == "segfault":
                ctypes.string_at(0)
            elif self.kind == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            elif self.kind == "none":
                return None
            elif self.kind == "keys":
                return {"rows": torch.zeros(20)}["row"]
            elif self.kind == "corrupt":
                raise OSError(f"image file is truncated ({index} bytes not processed)")
        return torch.randn(length)


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    context = "spawn" if args.kind == "lambda" else None
    data = Sentences(args.kind, args.when * 8 + 3 if rank == args.pick else -1)
    loader = DataLoader(data, batch_size=8, num_workers=args.workers, multiprocessing_context=context if args.workers else None)
    for step, batch in enumerate(loader):
        trainer.train_step(step, batch)


if __name__ == "__main__":
    args = options(kind="ragged", workers=2)
    start(main, args)
