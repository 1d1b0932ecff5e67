import json
import os
import queue
import threading
import time


class Reporter:
    def __init__(self, folder, enabled):
        self.queue = queue.Queue()
        self.enabled = enabled
        if enabled:
            self.file = open(os.path.join(folder, "metrics.jsonl"), "a")
            threading.Thread(target=self._drain, name="reporter", daemon=True).start()

    def _drain(self):
        while True:
            row = self.queue.get()
            self.file.write(json.dumps(row) + "\n")
            self.file.flush()

    def log(self, **row):
        if self.enabled:
            row["time"] = round(time.time(), 3)
            self.queue.put(row)
            print(" ".join(f"{k}={v}" for k, v in row.items() if k != "time"), flush=True)
