"""Two stages of a pipeline on several ranks each; one rank retries for ever to draw a sample that fits."""

import time

from kit import Log, Stage, connect, options, start


def sizes_for(step, strict):
    length = 5
    while strict and length > 4:
        length = 5 + step % 2
        time.sleep(0.05)
    return [4] * 4


def main(args):
    rank, world = connect(args)
    log, stage = Log(args, rank), Stage(world)
    for step in range(args.steps):
        log.step(step, stage.train_step(sizes_for(step, step > args.when and rank == args.pick)))


if __name__ == "__main__":
    start(main, options())
