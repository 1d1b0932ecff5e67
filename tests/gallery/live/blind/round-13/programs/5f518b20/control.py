import os
import queue
import threading
import time


class StopFileWatcher(threading.Thread):
    def __init__(self, path, interval=1.0):
        super().__init__(name="stop-file", daemon=True)
        self.path, self.interval = path, interval
        self.seen = False

    def run(self):
        while not self.seen:
            self.seen = os.path.exists(self.path)
            time.sleep(self.interval)


class ScalarWriter:
    def __init__(self, path):
        self.q = queue.Queue()
        self.path = path
        self.t = threading.Thread(target=self._loop, name="scalars", daemon=True)
        self.t.start()

    def add(self, tag, value, step):
        self.q.put((tag, value, step))

    def _loop(self):
        with open(self.path, "a", buffering=1) as f:
            while True:
                tag, value, step = self.q.get()
                f.write(f"{step}\t{tag}\t{value:.5f}\n")
