import json
import os
import signal
import tempfile
import threading
import time


class EventLog:
    """Buffered JSON lines. Written out after each step's events and, so that
    nothing is lost in a long step, also from a timer."""

    def __init__(self, directory=None):
        fd, self.path = tempfile.mkstemp(suffix=".jsonl", dir=directory)
        self._out = os.fdopen(fd, "w")
        self._rows = []
        self._lock = threading.Lock()
        self.written = 0

    def autoflush(self, first, every):
        def on_alarm(signum, frame):
            self.flush()
            signal.setitimer(signal.ITIMER_REAL, every)

        signal.signal(signal.SIGALRM, on_alarm)
        signal.setitimer(signal.ITIMER_REAL, first)

    def add(self, kind, **fields):
        with self._lock:
            self._rows.append({"t": time.time(), "kind": kind, **fields})

    def flush(self):
        with self._lock:
            rows, self._rows = self._rows, []
            for row in rows:
                self._out.write(json.dumps(row) + "\n")
                self._out.flush()
                os.fsync(self._out.fileno())
                time.sleep(0.03)
            self.written += len(rows)


class SilentLog:
    written = 0

    def add(self, kind, **fields):
        pass

    def flush(self):
        pass
