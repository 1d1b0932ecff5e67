import os
import threading
import time

import numpy as np
from transformers import TrainerCallback


class SystemMonitor(TrainerCallback):
    """Samples the load of the machine from a thread of rank 0, like experiment trackers do."""

    def __init__(self, interval=20.0):
        self.interval, self.samples = interval, []
        self._stop = threading.Event()

    def on_train_begin(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            threading.Thread(target=self._sample, name="system-monitor", daemon=True).start()

    def _sample(self):
        while not self._stop.wait(self.interval):
            self.samples.append(os.getloadavg()[0])

    def on_train_end(self, args, state, control, **kwargs):
        self._stop.set()


class Paced(TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        time.sleep(0.1)

    def on_prediction_step(self, args, state, control, **kwargs):
        time.sleep(0.25)


class Bootstrap:
    """Token accuracy with a bootstrap interval."""

    def __init__(self, resamples=60):
        self.resamples = resamples

    def __call__(self, prediction):
        preds, labels = prediction.predictions, prediction.label_ids
        hits = (preds[:, :-1] == labels[:, 1:])
        mask = labels[:, 1:] != -100
        rng = np.random.default_rng(0)
        means = []
        for _ in range(self.resamples):
            rows = rng.integers(0, len(hits), len(hits))
            means.append(hits[rows][mask[rows]].mean())
            time.sleep(0.1)
        return {"accuracy": float(hits[mask].mean()), "ci_low": float(np.quantile(means, 0.05))}
