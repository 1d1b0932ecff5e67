import json
import queue
import threading
import time
import urllib.request

from lightning.pytorch.loggers.logger import Logger
from lightning.pytorch.utilities import rank_zero_only


class AsyncTrackingLogger(Logger):
    """Hands metrics to a thread that posts them in batches."""

    def __init__(self, uri, max_pending=5000):
        super().__init__()
        self.uri = uri
        self.pending = queue.Queue(maxsize=max_pending)
        self.stored = 0
        self.thread = None

    @property
    def name(self):
        return "tracking"

    @property
    def version(self):
        return "0"

    @rank_zero_only
    def log_hyperparams(self, *args, **kwargs):
        pass

    @rank_zero_only
    def log_metrics(self, metrics, step=None):
        if self.thread is None:
            self.thread = threading.Thread(target=self._run, name="tracking", daemon=True)
            self.thread.start()
        try:
            self.pending.put_nowait({"step": step, "time": time.time(), **metrics})
        except queue.Full:
            pass

    def _run(self):
        while True:
            batch = [self.pending.get()]
            while len(batch) < 500:
                try:
                    batch.append(self.pending.get_nowait())
                except queue.Empty:
                    break
            data = json.dumps({"metrics": batch}).encode()
            req = urllib.request.Request(self.uri + "/log-batch", data=data)
            with urllib.request.urlopen(req, timeout=60) as resp:
                self.stored += json.loads(resp.read())["stored"]
