import fcntl
import json
import queue
import threading
import time


class BackgroundTracker:
    """Metrics go through a queue to a thread; a full queue drops them."""

    def __init__(self, path, rank):
        self.path = path
        self.rank = rank
        self.queue = queue.Queue(maxsize=256)
        self.dropped = 0
        threading.Thread(target=self._run, daemon=True, name="tracker").start()

    def log(self, **metrics):
        try:
            self.queue.put_nowait({"rank": self.rank, "time": time.time(), **metrics})
        except queue.Full:
            self.dropped += 1

    def _run(self):
        while True:
            row = self.queue.get()
            try:
                with open(self.path, "a") as f:
                    fcntl.flock(f, fcntl.LOCK_EX)
                    f.write(json.dumps(row) + "\n")
                    f.flush()
                    fcntl.flock(f, fcntl.LOCK_UN)
            except OSError as err:
                print(f"tracker: {err}")
