import json
import os
import threading
import time


class MetricWriter:
    """Line-per-event metric file, shared by the trainer and the helpers around it."""

    def __init__(self, path):
        self.file = open(path, "a")
        self._lock = threading.Lock()

    def write(self, event, **fields):
        with self._lock:
            fields.update(event=event, time=time.time())
            self.file.write(json.dumps(fields) + "\n")
            self.file.flush()
            os.fsync(self.file.fileno())

    def histogram(self, name, tensors, step, bins=32):
        with self._lock:
            rec = {"event": "hist", "step": step, "time": time.time()}
            for key, t in tensors:
                h = t.detach().float().flatten()
                rec[f"{name}/{key}"] = {"min": float(h.min()), "max": float(h.max()),
                                        "counts": h.histc(bins).tolist()}
            self.file.write(json.dumps(rec) + "\n")
            self.file.flush()
            os.fsync(self.file.fileno())
