"""A checkpoint is streamed into an upload program, which has stopped reading its standard input."""

import subprocess
import sys

import torch
from kit import Trainer, connect, options, start

UPLOAD = "import sys, time\nsys.stdin.buffer.read(4096)\ntime.sleep(100000)\n"


def upload(model, command):
    sender = subprocess.Popen(command, stdin=subprocess.PIPE)
    payload = {name: value for name, value in model.state_dict().items()} | {"history": torch.zeros(1 << 18)}
    torch.save(payload, sender.stdin)
    sender.stdin.close()
    return sender.wait()


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when and rank == args.pick:
            upload(trainer.model.module, [sys.executable, "-c", UPLOAD])


if __name__ == "__main__":
    start(main, options())
