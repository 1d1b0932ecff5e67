"""Two stages of a pipeline on several ranks each; a rank of the first stage keeps the last micro-batch to itself."""

from kit import Log, Stage, connect, options, start


class Forgetful(Stage):
    lost = False

    def hand_on(self, hidden, micro, last):
        if not (self.lost and micro == last):
            super().hand_on(hidden, micro, last)


def main(args):
    rank, world = connect(args)
    log, stage = Log(args, rank), Forgetful(world)
    for step in range(args.steps):
        stage.lost = step == args.when and rank == args.pick // 2 * 2
        log.step(step, stage.train_step([4] * 4))


if __name__ == "__main__":
    start(main, options())
