import resource
import threading


class UsageMonitor:
    def __init__(self, interval=5.0):
        self.interval = interval
        self.stop_event = threading.Event()
        self.samples = []
        self.thread = threading.Thread(target=self._loop, name="usage", daemon=True)
        self.thread.start()

    def _loop(self):
        while not self.stop_event.wait(self.interval):
            self.samples.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)

    def close(self):
        self.stop_event.set()
        self.thread.join()
