import json
import os
import threading


class LiveConfig(threading.Thread):
    """Looks at a small JSON file once a second, so that the rate can be changed while a run goes on."""

    def __init__(self, path, defaults, interval=1.0):
        super().__init__(daemon=True, name="live-config")
        self.path, self.interval = path, interval
        self.values = dict(defaults)
        self.stamp = None
        self.lock = threading.Lock()
        self.closed = threading.Event()

    def run(self):
        while not self.closed.wait(self.interval):
            try:
                stamp = os.stat(self.path).st_mtime_ns
            except FileNotFoundError:
                continue
            if stamp != self.stamp:
                with open(self.path) as f:
                    fresh = json.load(f)
                with self.lock:
                    self.values.update(fresh)
                self.stamp = stamp

    def get(self, key):
        with self.lock:
            return self.values[key]
