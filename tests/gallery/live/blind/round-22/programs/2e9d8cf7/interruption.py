import json
import os
import threading
import time


class InterruptionWatcher(threading.Thread):
    """Polls the metadata of this host; `requested` is set when it is to be taken back."""

    def __init__(self, folder, host, interval=1.0):
        super().__init__(name="interruption-watcher", daemon=True)
        self.path = os.path.join(folder, f"host{host}.json")
        self.interval = interval
        self.requested = threading.Event()

    def run(self):
        while not self.requested.is_set():
            try:
                with open(self.path) as f:
                    if json.load(f)["action"] == "terminate":
                        self.requested.set()
            except FileNotFoundError:
                pass
            time.sleep(self.interval)
