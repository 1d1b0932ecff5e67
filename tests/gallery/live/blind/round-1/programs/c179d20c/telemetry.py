import gzip
import json
import os
import threading
import time


class Telemetry:
    """Counters and a timeline, written to disk once in a while."""

    def __init__(self, path, every=0.3):
        self.path = path
        self.every = every
        self.counters = {}
        self.timeline = bytearray(os.urandom(1 << 20) * 10)
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._loop, name="telemetry", daemon=True)
        self._thread.start()

    def incr(self, name, n=1):
        with self._lock:
            self.counters[name] = self.counters.get(name, 0) + n

    def event(self, **kw):
        with self._lock:
            self.timeline += json.dumps(kw).encode() + b"\n"

    def flush(self):
        with self._lock:
            with gzip.open(self.path, "wb", compresslevel=6) as f:
                f.write(json.dumps(self.counters).encode() + b"\n")
                f.write(bytes(self.timeline))

    def _loop(self):
        while True:
            time.sleep(self.every)
            self.flush()


class NullTelemetry:
    def incr(self, name, n=1):
        pass

    def event(self, **kw):
        pass
