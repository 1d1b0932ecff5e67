import json
import multiprocessing as mp
import os
import tempfile
import time

from transformers import TrainerCallback


def pump(queue, path):
    with open(path, "a") as f:
        while True:
            item = queue.get()
            if item is None:
                break
            time.sleep(1.5)
            f.write(json.dumps(item) + "\n")
            f.flush()


class MetricsPump(TrainerCallback):
    """Hands the logs of the main process to a helper that writes them out at its own pace."""

    def __init__(self):
        self.queue = None

    def on_train_begin(self, args, state, control, **kw):
        if state.is_world_process_zero:
            ctx = mp.get_context("spawn")
            self.queue = ctx.Queue()
            path = os.path.join(tempfile.mkdtemp(), "metrics.jsonl")
            ctx.Process(target=pump, args=(self.queue, path), daemon=True).start()

    def on_log(self, args, state, control, logs=None, **kw):
        if self.queue is not None and self.queue.qsize() < 100:
            self.queue.put({"step": state.global_step, **(logs or {})})


class Plateau(TrainerCallback):
    """Halves the learning rate when the (gathered) evaluation loss has not improved for some time."""

    def __init__(self, patience=3, floor=1e-5):
        self.patience, self.floor = patience, floor
        self.best, self.bad = float("inf"), 0

    def on_evaluate(self, args, state, control, metrics=None, optimizer=None, **kw):
        value = metrics["eval_loss"]
        self.bad = 0 if value < self.best else self.bad + 1
        self.best = min(self.best, value)
        if self.bad >= self.patience and optimizer is not None:
            for g in optimizer.param_groups:
                g["lr"] = max(self.floor, g["lr"] / 2)
            self.bad = 0
