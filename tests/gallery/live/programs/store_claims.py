"""Two ranks claim a token in the store, see each other's claim, step back and try again, for ever in step."""

import time

import torch.distributed as dist
from kit import Trainer, connect, options, start


def claim(store, name, mine, other, polite):
    turn = 0
    while True:
        turn += 1
        store.set(f"{name}/{mine}/{turn}", "want")
        store.wait([f"{name}/{other}/{turn}"])
        if not polite:
            return
        store.set(f"{name}/{mine}/{turn}/back", "yield")
        store.wait([f"{name}/{other}/{turn}/back"])
        time.sleep(0.01)


def main(args):
    rank, world = connect(args)
    trainer = Trainer(args, rank)
    store = dist.distributed_c10d._get_default_store()
    pair = sorted({args.pick, (args.pick + 1) % world})
    for step in range(args.steps):
        trainer.train_step(step)
        if rank in pair and step >= args.when:
            claim(store, f"token{step}", rank, sum(pair) - rank, True)


if __name__ == "__main__":
    start(main, options())
