"""Only the reporting rank gathers the metric objects."""

import torch.distributed as dist
from kit import Trainer, connect, options, start


def report(metrics, reporter):
    if dist.get_rank() == reporter:
        collected = [None] * dist.get_world_size()
        dist.all_gather_object(collected, metrics)
        print(collected, flush=True)


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        loss = trainer.train_step(step)
        if step == args.when:
            report({"step": step, "loss": float(loss)}, args.pick)
            dist.monitored_barrier()


if __name__ == "__main__":
    start(main, options())
