"""One rank takes an flock on the cache file that another program holds."""

import fcntl

from kit import Trainer, connect, options, start


def update_cache(path, step):
    with open(path, "a") as cache:
        fcntl.flock(cache, fcntl.LOCK_EX)
        cache.write(f"{step}\n")
        fcntl.flock(cache, fcntl.LOCK_UN)


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when and rank == args.pick:
            update_cache("features.cache", step)


if __name__ == "__main__":
    start(main, options())
