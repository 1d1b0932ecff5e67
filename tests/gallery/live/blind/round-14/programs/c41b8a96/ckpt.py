import os
import queue
import threading

import torch


class Writer(threading.Thread):
    """Writes checkpoints off the training thread, newest last."""

    def __init__(self, root):
        super().__init__(daemon=True)
        self.root = root
        self.jobs = queue.Queue(maxsize=2)
        self.start()

    def submit(self, step, state):
        self.jobs.put((step, state))

    def run(self):
        while True:
            step, state = self.jobs.get()
            tmp = os.path.join(self.root, "tmp.pt")
            torch.save(state, tmp)
            with open(tmp, "rb") as f:
                os.fsync(f.fileno())
            os.replace(tmp, os.path.join(self.root, "last.pt"))
            print(f"[ckpt] step {step} written", flush=True)


class Heartbeat(threading.Thread):
    """Touches a file so that the scheduler sees the job alive."""

    def __init__(self, path, every=2.0):
        super().__init__(daemon=True)
        self.path, self.every = path, every
        self.wake = threading.Event()
        self.start()

    def run(self):
        while not self.wake.wait(self.every):
            with open(self.path, "w") as f:
                f.write("alive\n")
