"""Training that ends on one rank with an ordinary Python exception of the kind asked for."""

import json
import os
import time

from kit import Trainer, connect, make_batch, options, start
from torch.distributed.elastic.multiprocessing.errors import record


class ScheduleError(Exception):
    pass


def warmup(step, settings):
    return settings["warmup_steps"] / max(1, step)


def read_mixture(path):
    with open(path) as file:
        return json.load(file)


def weight_of(part, parts):
    return parts[part] / sum(value for value in parts.values() if value is None)


def check_sequence(batch):
    assert batch.shape[-1] % 64 == 0, f"sequence length {batch.shape[-1]} is not a multiple of 64"


def pick_expert(scores):
    ranked = [expert for expert, score in enumerate(scores) if score > 2.0]
    return ranked[0]


def project(batch):
    import torch

    return torch.nn.functional.linear(batch.flatten(1).float(), torch.zeros(4, 37))


def after_step(kind, step, batch):
    if kind == "key":
        warmup(step, {"lr": 0.1})
    elif kind == "file":
        read_mixture("configs/mixture_v3.json")
    elif kind == "zero":
        weight_of("web", {"web": 3})
    elif kind == "assert":
        check_sequence(batch)
    elif kind == "index":
        pick_expert([0.1, 0.4])
    elif kind == "shape":
        project(batch)
    elif kind == "own":
        raise ScheduleError(f"no phase of the schedule covers step {step}")
    elif kind == "chained":
        try:
            warmup(step, {})
        except KeyError as error:
            raise ScheduleError("the settings are incomplete") from error
    elif kind == "attribute":
        batch.lengths.max()
    elif kind == "type":
        batch + None
    elif kind == "exit":
        print("validation set is missing, giving up", flush=True)
        raise SystemExit(3)


@record
def main(args):
    rank, _ = connect(args)
    trainer = Trainer(args, rank)
    for step in range(args.steps):
        trainer.train_step(step)
        if step == args.when and rank == args.pick and int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)) < args.until:
            after_step(args.kind, step, make_batch(args.seed))
        time.sleep(0.01)
    trainer.log.say(f"done after {args.steps} steps")


if __name__ == "__main__":
    args = options(kind="key", until=9)
    start(main, args)
