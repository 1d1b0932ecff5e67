import json
import signal
import threading
import time

import torch


class MetricBuffer:
    """Collects rows in memory and writes them out every few seconds and on SIGTERM."""

    def __init__(self, path, first_flush, flush_secs):
        self._path = path
        self._lock = threading.Lock()
        self._rows = []
        signal.signal(signal.SIGALRM, self._on_signal)
        signal.signal(signal.SIGTERM, self._on_term)
        signal.setitimer(signal.ITIMER_REAL, first_flush, flush_secs)

    def append(self, step, scalars, module):
        with self._lock:
            row = {"step": step, "time": time.time(), **scalars}
            for name, p in module.named_parameters():
                if p.grad is None:
                    continue
                g = p.grad.detach().flatten()
                row["hist/" + name] = [round(v) for v in torch.histc(g, bins=64).tolist()]
                row["q/" + name] = [float(f"{v:.3e}") for v in torch.sort(g)[0][:: max(1, g.numel() // 32)].tolist()]
            self._rows.append(json.dumps(row))

    def flush(self):
        with self._lock:
            rows, self._rows = self._rows, []
            with open(self._path, "a") as f:
                for r in rows:
                    f.write(r + "\n")

    def _on_signal(self, signum, frame):
        self.flush()

    def _on_term(self, signum, frame):
        self.flush()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)

    def close(self):
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.flush()
