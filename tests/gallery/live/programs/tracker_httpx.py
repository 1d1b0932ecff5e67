"""A tracker run is opened with httpx by one rank before training; the others wait at a barrier."""

import httpx
import torch.distributed as dist
from kit import Trainer, connect, options, start


class Run:
    def __init__(self, server, name):
        self.session = httpx.Client(timeout=None)
        self.url = f"http://{server}/graphql"
        self.id = self.session.post(self.url, json={"query": "mutation UpsertBucket", "name": name}).json()["id"]


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.when):
        trainer.train_step(step)
    run = Run(args.server, "finetune-3") if rank == args.pick else None
    dist.barrier()
    for step in range(args.when, args.steps):
        trainer.train_step(step)
    print(run)


if __name__ == "__main__":
    start(main, options(server="127.0.0.1:1"))
