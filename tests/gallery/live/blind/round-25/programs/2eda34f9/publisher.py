import os
import tempfile
import threading
import time

import torch


class SnapshotPublisher:
    """Writes serving snapshots of the model from its own thread."""

    def __init__(self, model, model_lock, every_s=8.0):
        self.model = model
        self.model_lock = model_lock
        self.every_s = every_s
        self._lock = threading.Lock()
        self._updates = 0
        self._published = 0
        self._dir = tempfile.mkdtemp(prefix="serving-")
        self._thread = threading.Thread(target=self._loop, name="publisher", daemon=True)

    def start(self):
        self._thread.start()

    def updated(self, n_examples):
        with self._lock:
            self._updates += n_examples

    def _open_version(self):
        tmp = os.path.join(self._dir, f"v{self._published}.tmp")
        with open(tmp, "wb") as f:
            f.write(b"\0" * 4096)
            f.flush()
            os.fsync(f.fileno())
        time.sleep(0.4)
        return tmp

    def publish(self):
        with self._lock:
            if not self._updates:
                return
            tmp = self._open_version()
            with self.model_lock:
                state = {k: v.clone() for k, v in self.model.state_dict().items()}
            torch.save(state, tmp)
            os.replace(tmp, tmp[:-4] + ".pt")
            print(f"published v{self._published} after {self._updates} examples", flush=True)
            self._updates = 0
            self._published += 1

    def _loop(self):
        while True:
            time.sleep(self.every_s)
            self.publish()
