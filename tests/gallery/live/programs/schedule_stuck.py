"""torch's own pipeline: the forward of one stage never comes to an end."""

import time

from kit import Log, connect, gpipe, options, start


def settle(step, ill):
    while ill:
        time.sleep(0.2)


def main(args):
    rank, world = connect(args)
    log, run = Log(args, rank), gpipe(rank, world, 4)
    for step in range(args.steps):
        settle(step, step == args.when + 1 and rank == args.pick)
        log.step(step, run())


if __name__ == "__main__":
    start(main, options())
