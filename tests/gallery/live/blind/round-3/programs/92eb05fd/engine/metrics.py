import json
import logging
import os
import threading
import time

logger = logging.getLogger("engine.metrics")


class MetricsStore:
    """Keeps scalars and text events; a thread writes them out at intervals."""

    def __init__(self, path, interval=15.0):
        self.path, self.interval = path, interval
        self._lock = threading.Lock()
        self._events = []
        threading.Thread(target=self._flush_loop, name="metrics-flush", daemon=True).start()

    def add(self, kind, **fields):
        with self._lock:
            self._events.append({"t": time.time(), "kind": kind, **fields})

    def flush(self):
        with self._lock:
            n = len(self._events)
            with open(self.path, "a") as f:
                for e in self._events:
                    f.write(json.dumps(e) + "\n")
                f.flush()
                os.fsync(f.fileno())
                time.sleep(0.4)
            self._events.clear()
            logger.info("flushed %d events to %s", n, self.path)

    def _flush_loop(self):
        while True:
            time.sleep(self.interval)
            self.flush()


class EventHandler(logging.Handler):
    """Mirrors log records into the metrics store so that they show up beside the curves."""

    def __init__(self, store):
        super().__init__(logging.INFO)
        self.store = store

    def emit(self, record):
        self.store.add("log", level=record.levelname, msg=record.getMessage())
