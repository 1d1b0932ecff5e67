import queue
import shutil
import threading
import time


class Uploader:
    """Moves finished checkpoints to the archive in the background."""

    def __init__(self, archive, bandwidth_s=12.0):
        self.archive = archive
        self.bandwidth_s = bandwidth_s
        self.todo = queue.Queue(maxsize=4)
        self.done = 0
        self.thread = threading.Thread(target=self._run, name="uploader", daemon=True)
        self.thread.start()

    def submit(self, path):
        self.todo.put(path)

    def _run(self):
        while True:
            path = self.todo.get()
            for _ in range(12):
                time.sleep(self.bandwidth_s / 12)
            shutil.rmtree(self.archive, ignore_errors=True)
            shutil.move(path, self.archive)
            self.done += 1
