import csv
import os
import threading
import time


class ResourceMonitor(threading.Thread):
    def __init__(self, path, interval=1.0):
        super().__init__(name="resource-monitor")
        self.path = path
        self.interval = interval
        self._stop_event = threading.Event()

    def _sample(self):
        with open("/proc/self/statm") as f:
            rss = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        t = os.times()
        return time.time(), rss >> 20, t.user + t.system

    def run(self):
        with open(self.path, "w", newline="") as f:
            w = csv.writer(f)
            w.writerow(["time", "rss_mb", "cpu_s"])
            while not self._stop_event.wait(self.interval):
                w.writerow(self._sample())
                f.flush()

    def stop(self):
        self._stop_event.set()
        self.join()
