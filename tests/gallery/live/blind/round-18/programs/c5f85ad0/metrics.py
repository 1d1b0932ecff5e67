import json
import os
import queue
import tempfile
import threading


class MetricsWriter:
    def __init__(self, rank):
        self.q = queue.Queue(maxsize=1000)
        self.path = os.path.join(tempfile.mkdtemp(prefix="metrics-"), f"rank{rank}.jsonl")
        self.thread = threading.Thread(target=self._drain, name="metrics-writer", daemon=True)
        self.thread.start()

    def log(self, **kw):
        self.q.put(kw)

    def _drain(self):
        with open(self.path, "a") as f:
            while True:
                item = self.q.get()
                if item is None:
                    return
                f.write(json.dumps(item) + "\n")
                f.flush()

    def close(self):
        self.q.put(None)
        self.thread.join()
