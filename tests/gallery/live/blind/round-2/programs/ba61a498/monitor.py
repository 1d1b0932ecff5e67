import json
import threading
import time

import psutil


class ResourceMonitor(threading.Thread):
    def __init__(self, path, interval=5.0):
        super().__init__(name="resource-monitor")
        self.path, self.interval = path, interval
        self._stop_event = threading.Event()

    def run(self):
        proc = psutil.Process()
        with open(self.path, "a") as f:
            while not self._stop_event.wait(self.interval):
                f.write(json.dumps({"t": time.time(), "rss": proc.memory_info().rss, "cpu": proc.cpu_percent()}) + "\n")
                f.flush()

    def stop(self):
        self._stop_event.set()
        self.join()
