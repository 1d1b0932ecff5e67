"""Run history, compressed to disk in the background."""
import json
import threading
import time
import zlib
from collections import deque


class Recorder:
    def __init__(self, path):
        self.path = path
        self.lock = threading.Lock()
        self.inbox = deque()
        self.events = []
        self.history = []
        threading.Thread(target=self._loop, daemon=True).start()

    def scalar(self, step, **values):
        self.inbox.append({"step": step, "t": time.time(), **values})

    def event(self, text):
        with self.lock:
            self.events.append((time.time(), text))

    def _loop(self):
        while True:
            with self.lock:
                while self.inbox:
                    self.history.append(self.inbox.popleft())
                self._write()
            time.sleep(0.02)

    def _write(self):
        raw = json.dumps({"events": self.events, "history": self.history[-20000:]}).encode()
        raw += b" " * max(0, (1 << 23) - len(raw))
        with open(self.path, "wb") as f:
            f.write(zlib.compress(raw, 9))
