import json
import lzma
import os
import threading
import time
from collections import deque


class RunArchive:
    def __init__(self, root, interval=0.5):
        self.path = os.path.join(root, "history.json.xz")
        self.index = os.path.join(root, "artifacts.txt")
        self.interval = interval
        self.inbox = deque()
        self.rows = []
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._flush_loop, name="archive-flush", daemon=True)
        self._thread.start()

    def record(self, row):
        self.inbox.append(row)

    def _flush_loop(self):
        while True:
            time.sleep(self.interval)
            while self.inbox:
                self.rows.append(self.inbox.popleft())
            with self._lock:
                blob = lzma.compress(json.dumps(self.rows[-400:]).encode(), preset=6)
                with open(self.path + ".tmp", "wb") as f:
                    f.write(blob)
                    os.fsync(f.fileno())
                os.replace(self.path + ".tmp", self.path)

    def add_artifact(self, name, size):
        with self._lock:
            with open(self.index, "a") as f:
                f.write(f"{name}\t{size}\n")
