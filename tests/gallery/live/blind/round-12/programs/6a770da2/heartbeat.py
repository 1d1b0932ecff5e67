import json
import os
import queue
import threading
import time


class MetricWriter(threading.Thread):
    def __init__(self, path):
        super().__init__(daemon=True, name="metric-writer")
        self.rows = queue.Queue(maxsize=64)
        self.path = path

    def put(self, **row):
        self.rows.put(row)

    def run(self):
        with open(self.path, "a") as out:
            while True:
                row = self.rows.get()
                out.write(json.dumps(row) + "\n")
                out.flush()


class Heartbeat(threading.Thread):
    def __init__(self, path, period=3.0):
        super().__init__(daemon=True, name="heartbeat")
        self.path, self.period = path, period
        self.stop = threading.Event()

    def run(self):
        while not self.stop.wait(self.period):
            with open(self.path, "w") as f:
                f.write(str(time.time()))
            os.utime(self.path)
