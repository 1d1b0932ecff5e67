import json
import os
import queue
import tempfile
import threading


class MetricWriter:
    """Writes metrics beside the training loop so that slow disks do not cost step time."""

    def __init__(self, rank):
        folder = tempfile.mkdtemp(prefix="ctr_metrics_")
        self.path = os.path.join(folder, f"rank{rank}.jsonl")
        self.queue = queue.Queue(maxsize=1000)
        self.thread = threading.Thread(target=self._run, name="metric-writer")
        self.thread.start()

    def log(self, **values):
        self.queue.put(values)

    def _run(self):
        with open(self.path, "a") as f:
            while True:
                item = self.queue.get()
                if item is None:
                    break
                f.write(json.dumps(item) + "\n")
                f.flush()

    def close(self):
        self.queue.put(None)
        self.thread.join()
