"""torch's own pipeline: one stage on each rank, GPipe."""

from kit import Log, connect, gpipe, options, start


def main(args):
    rank, world = connect(args)
    log, run = Log(args, rank), gpipe(rank, world, 4)
    for step in range(args.steps):
        log.step(step, run())


if __name__ == "__main__":
    start(main, options())
