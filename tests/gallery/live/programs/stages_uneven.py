"""Two stages of a pipeline on several ranks each; one rank cuts its batch into more micro-batches than the stage beside it."""

from kit import Log, Stage, connect, options, start


def main(args):
    rank, world = connect(args)
    log, stage = Log(args, rank), Stage(world)
    for step in range(args.steps):
        sizes = [4] * 4 if step < args.when or rank != args.pick else [4] * 5
        log.step(step, stage.train_step(sizes))


if __name__ == "__main__":
    start(main, options())
