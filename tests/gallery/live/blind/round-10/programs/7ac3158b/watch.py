import json
import os
import threading


class UsageLog(threading.Thread):
    """Appends this process's memory and CPU use to a file every other second."""

    def __init__(self, path):
        super().__init__(daemon=True, name="usage-log")
        self.path, self.stop = path, threading.Event()

    def run(self):
        with open(self.path, "a") as out:
            while not self.stop.wait(2.0):
                rss = int(open("/proc/self/statm").read().split()[1]) * 4096
                out.write(json.dumps({"rss": rss, "cpu": sum(os.times()[:2])}) + "\n")
                out.flush()
