import json
import os

import numpy as np
from filelock import FileLock


class StepAccuracy:
    """Accuracy over reasoning steps; rows are kept in a cache file until they are computed."""

    def __init__(self, cache_dir, experiment_id="default_experiment"):
        os.makedirs(cache_dir, exist_ok=True)
        self.path = os.path.join(cache_dir, f"step_accuracy-{experiment_id}.jsonl")
        self.lock = FileLock(self.path + ".lock")
        self.writer = None

    def _init_writer(self):
        self.lock.acquire()
        self.writer = open(self.path, "w")

    def add_batch(self, predictions, references, tag="model"):
        if self.writer is None:
            self._init_writer()
        for p, r in zip(predictions, references):
            self.writer.write(json.dumps({"tag": tag, "p": int(p), "r": int(r)}) + "\n")

    def compute(self):
        self.writer.close()
        with open(self.path) as f:
            rows = [json.loads(line) for line in f]
        os.remove(self.path)
        self.writer = None
        self.lock.release()
        out = {}
        for tag in sorted({row["tag"] for row in rows}):
            hits = [row["p"] == row["r"] for row in rows if row["tag"] == tag]
            out[f"{tag}_acc"] = float(np.mean(hits))
        return out
