import json
import os
import threading
import time

from transformers import TrainerCallback


class HeartbeatCallback(TrainerCallback):
    """Writes a small status file now and then, for the dashboard."""

    def __init__(self, path, every=5.0):
        self.path, self.every = path, every
        self.state = {}
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def _run(self):
        while not self.stop.wait(self.every):
            with open(self.path, "w") as f:
                json.dump({"time": time.time(), **self.state}, f)

    def on_train_begin(self, args, state, control, **kwargs):
        self.thread.start()

    def on_step_end(self, args, state, control, **kwargs):
        self.state = {"step": state.global_step, "pid": os.getpid()}

    def on_train_end(self, args, state, control, **kwargs):
        self.stop.set()
        self.thread.join()
