import json
import os
import signal
import tempfile
import threading
import time


class WriteBuffer:
    """Collects scalar records and flushes them to a JSONL file."""

    def __init__(self, path, flush_every=64):
        self.path = path
        self.flush_every = flush_every
        self._lock = threading.Lock()
        self._pending = []
        self.sum = {}

    def append(self, record):
        with self._lock:
            self._pending.append(record)
            for key, value in record.items():
                if isinstance(value, float):
                    self.sum[key] = self.sum.get(key, 0.0) * 0.98 + 0.02 * value
            if len(self._pending) >= self.flush_every:
                self._write()
            self._sync()

    def _write(self):
        with open(self.path, "a") as f:
            for record in self._pending:
                f.write(json.dumps(record) + "\n")
        self._pending.clear()

    def _sync(self):
        with open(self.path + ".live", "w") as f:
            json.dump(self.sum, f)
            f.flush()
            os.fsync(f.fileno())
            time.sleep(0.02)

    def flush(self):
        with self._lock:
            if self._pending:
                self._write()


def start_reporter(buffer, period):
    def on_tick(signum, frame):
        buffer.flush()
        print(f"[{time.strftime('%H:%M:%S')}] " +
              " ".join(f"{k}={v:.4f}" for k, v in sorted(buffer.sum.items())), flush=True)
        signal.setitimer(signal.ITIMER_REAL, period)

    signal.signal(signal.SIGALRM, on_tick)
    signal.setitimer(signal.ITIMER_REAL, 8.0)


def open_buffer(run_name):
    folder = tempfile.mkdtemp(prefix=f"{run_name}-")
    return WriteBuffer(os.path.join(folder, "scalars.jsonl"))
