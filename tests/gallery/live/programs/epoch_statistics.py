"""Between epochs every rank computes statistics of its weights for the log, for a few seconds."""

from kit import Trainer, connect, options, start


def statistics(model, rounds):
    rows = {}
    for turn in range(rounds):
        for name, parameter in model.named_parameters():
            values = parameter.detach().flatten()
            rows[name, turn % 7] = float(values.std()), float(values.abs().quantile(0.9)), int(values.histc(20).argmax())
    return rows


def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        if step % 5 == 4:
            statistics(trainer.model, 400)


if __name__ == "__main__":
    start(main, options())
