"""A memory cgroup whose OOM killer is off: who wants more than the limit sleeps in the kernel."""

import torch
from kit import Trainer, connect, options, start


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    history = []
    for step in range(args.steps):
        trainer.train_step(step)
        if step >= args.when:
            history.append(torch.ones(1 << 19))
            if len(history) > 40 and rank != args.pick:
                history.clear()


if __name__ == "__main__":
    start(main, options())
