import queue
import threading
import time


class Uploader(threading.Thread):
    """Takes finished reports off the training thread."""

    def __init__(self):
        super().__init__(name="uploader", daemon=True)
        self.inbox = queue.Queue()
        self.sent = 0

    def run(self):
        while True:
            item = self.inbox.get()
            if item is None:
                return
            time.sleep(0.4)
            self.sent += 1


class Watch(threading.Thread):
    def __init__(self, period=60):
        super().__init__(name="watch", daemon=True)
        self.period = period
        self.stop = threading.Event()

    def run(self):
        while not self.stop.wait(self.period):
            pass
