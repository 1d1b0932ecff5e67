import atexit
import io
import json
import os
import queue
import threading
import urllib.request

import torch


class AsyncArtifactLogger:
    """Uploads artifacts from a thread, so that training need not wait for the store."""

    def __init__(self, run_name):
        self.base = f"http://127.0.0.1:{os.environ['TRACKING_PORT']}/runs/{run_name}"
        self.queue = queue.Queue()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._loop, name="artifact-upload", daemon=True)
        self.thread.start()
        atexit.register(self._at_exit)

    def _put(self, name, body):
        req = urllib.request.Request(f"{self.base}/{name}", data=body, method="PUT")
        with urllib.request.urlopen(req) as resp:
            return resp.status

    def _loop(self):
        while not (self.stop.is_set() and self.queue.empty()):
            try:
                name, body = self.queue.get(timeout=0.5)
            except queue.Empty:
                continue
            self._put(name, body)

    def log_metrics(self, step, **values):
        self.queue.put((f"metrics/{step}.json", json.dumps(values).encode()))

    def log_model(self, step, module):
        buf = io.BytesIO()
        torch.save(module.state_dict(), buf)
        self.queue.put((f"models/{step}.pt", buf.getvalue()))

    def _at_exit(self):
        self.stop.set()
        self.thread.join()
