import json
import os
import threading
import time
from collections import deque


class SummaryThread(threading.Thread):
    """Takes scalars and histograms from the training loop and writes them to disk."""

    def __init__(self, path, flush_secs=10):
        super().__init__(name="summary", daemon=True)
        self.path = path
        self.flush_secs = flush_secs
        self.pending = deque()
        self.closed = False

    def add(self, step, tag, value):
        self.pending.append((step, tag, value))

    def run(self):
        next_flush = time.monotonic() + self.flush_secs
        with open(self.path, "a") as f:
            while not self.closed or self.pending:
                if self.pending:
                    step, tag, value = self.pending.popleft()
                    f.write(json.dumps({"step": step, "tag": tag, "value": value}) + "\n")
                if time.monotonic() >= next_flush:
                    f.flush()
                    next_flush = time.monotonic() + self.flush_secs

    def close(self):
        self.closed = True
        self.join()


class SummaryWriter:
    def __init__(self, log_dir):
        os.makedirs(log_dir, exist_ok=True)
        self.path = os.path.join(log_dir, "events.jsonl")
        self._thread = None

    def scalar(self, step, tag, value):
        if self._thread is None:
            self._thread = SummaryThread(self.path)
            self._thread.start()
        self._thread.add(step, tag, value)

    def close(self):
        if self._thread is not None:
            self._thread.close()
