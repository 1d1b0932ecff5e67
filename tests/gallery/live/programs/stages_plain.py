"""Two stages of a pipeline, each on several ranks: activations and gradients go by send and recv, and the ranks of a stage average theirs."""

from kit import Log, Stage, connect, options, start


def main(args):
    rank, world = connect(args)
    log, stage = Log(args, rank), Stage(world)
    for step in range(args.steps):
        log.step(step, stage.train_step([4] * 4))


if __name__ == "__main__":
    start(main, options())
