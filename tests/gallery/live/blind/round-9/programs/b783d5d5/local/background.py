import os
import queue
import threading
import time

import torch


class Saver(threading.Thread):
    def __init__(self, folder):
        super().__init__(name="saver", daemon=True)
        self.folder, self.jobs = folder, queue.Queue(maxsize=2)
        self.start()

    def run(self):
        while True:
            step, state = self.jobs.get()
            tmp = os.path.join(self.folder, "model.tmp")
            torch.save({"step": step, "model": state}, tmp)
            os.replace(tmp, os.path.join(self.folder, "model.pt"))
            self.jobs.task_done()

    def submit(self, step, model):
        self.jobs.put((step, {k: v.detach().clone() for k, v in model.state_dict().items()}))


class Heartbeat(threading.Thread):
    def __init__(self, folder, rank, period=2.0):
        super().__init__(name="heartbeat", daemon=True)
        self.path, self.period, self.step = os.path.join(folder, f"beat.{rank}"), period, 0
        self.start()

    def run(self):
        while True:
            with open(self.path, "w") as f:
                f.write(f"{self.step} {time.time():.1f}\n")
            time.sleep(self.period)
