import time
from functools import partial

import torch.distributed as dist

from engine import Events
from metrics import RunningAverage


def setup_console(trainer, every):
    def log(engine):
        if engine.state.iteration % every == 0:
            shown = " ".join(f"{k}={v:.4f}" for k, v in engine.state.metrics.items()) or f"loss={engine.state.output['loss']:.4f}"
            print(f"epoch {engine.state.epoch} iter {engine.state.iteration} {shown}", flush=True)

    trainer.add_event_handler(Events.ITERATION_COMPLETED, log)


def setup_throttle(trainer, pause):
    trainer.add_event_handler(Events.ITERATION_COMPLETED, lambda e: time.sleep(pause))


def setup_training_handlers(trainer, names, log_from, every=10):
    setup_throttle(trainer, 0.06)
    if dist.get_rank() > 0:
        return
    setup_console(trainer, every)

    def start_averages(engine):
        if engine.state.epoch == log_from:
            for n in names:
                RunningAverage(partial(lambda out, name: out[name], name=n)).attach(engine, n)

    trainer.add_event_handler(Events.EPOCH_STARTED, start_averages)
