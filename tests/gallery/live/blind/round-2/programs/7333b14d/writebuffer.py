import json
import os
import signal
import threading
import time


class WriteBuffer:
    """Collects records and appends them to a JSONL file; also flushed from a timer so that dashboards stay fresh."""

    def __init__(self, path, max_records=64, flush_every=2.0):
        self.path, self.max_records, self.flush_every = path, max_records, flush_every
        self._lock = threading.Lock()
        self._records = []
        signal.signal(signal.SIGALRM, self._on_alarm)
        signal.setitimer(signal.ITIMER_REAL, flush_every)

    def append(self, record):
        with self._lock:
            self._records.append({"ts": time.time(), **record})
            if len(self._records) >= self.max_records:
                self._write()

    def flush(self):
        with self._lock:
            self._write()

    def _on_alarm(self, signum, frame):
        self.flush()
        signal.setitimer(signal.ITIMER_REAL, self.flush_every)

    def _write(self):
        if not self._records:
            return
        with open(self.path, "a") as f:
            for r in self._records:
                f.write(json.dumps(r) + "\n")
                f.flush()
                os.fsync(f.fileno())
        self._records.clear()
