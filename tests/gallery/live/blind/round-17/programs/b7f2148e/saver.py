import copy
import os
import queue
import threading

import torch


class BackgroundSaver(threading.Thread):
    def __init__(self, directory):
        super().__init__(daemon=True, name="ckpt-writer")
        self.directory, self.q = directory, queue.Queue(maxsize=2)
        os.makedirs(directory, exist_ok=True)
        self.start()

    def submit(self, step, state):
        self.q.put((step, copy.deepcopy(state)))

    def run(self):
        while True:
            step, state = self.q.get()
            path = os.path.join(self.directory, "last.pt")
            torch.save(state, path + ".tmp")
            os.replace(path + ".tmp", path)
            print(f"wrote {path} (step {step})", flush=True)
