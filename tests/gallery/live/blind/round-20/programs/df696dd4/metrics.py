import json
import math
import os
import threading
from collections import defaultdict, deque


class MetricStore:
    """Windowed training statistics, readable at any time as one consistent snapshot."""

    def __init__(self, window=50, layers_every=2):
        self._lock = threading.Lock()
        self._scalars = defaultdict(lambda: deque(maxlen=window))
        self._layers = {}
        self.layers_every = layers_every
        self.step = 0

    def update(self, step, scalars, named_grads):
        with self._lock:
            self.step = step
            for key, value in scalars.items():
                self._scalars[key].append(float(value))
            if step % self.layers_every:
                return
            for name, grad in named_grads:
                flat = grad.detach().flatten()
                quant = [float(flat.quantile(q)) for q in (0.05, 0.5, 0.95)]
                self._layers[name] = {
                    "norm": float(flat.norm()),
                    "absmax": float(flat.abs().max()),
                    "quantiles": quant,
                }

    def snapshot(self):
        with self._lock:
            means = {k: sum(v) / max(1, len(v)) for k, v in self._scalars.items()}
            norms = {k: v["norm"] for k, v in self._layers.items()}
            total = math.sqrt(sum(n * n for n in norms.values()))
            return {"step": self.step, "means": means, "grad_norm": total, "layers": dict(self._layers)}


def write_status(store, path):
    tmp = path + ".tmp"
    with open(tmp, "w") as f:
        json.dump(store.snapshot(), f)
    os.replace(tmp, path)
