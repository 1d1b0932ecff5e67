import multiprocessing as mp
import os

import torch


class BackgroundSaver:
    """Snapshots the weights and writes them from a child process."""

    def __init__(self, folder, recorder):
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self.recorder = recorder
        self.ctx = mp.get_context("fork")
        self.proc = None

    def _write(self, step, state):
        path = os.path.join(self.folder, f"step{step % 3000:06d}.pt")
        self.recorder.event(f"writing {path}")
        torch.save(state, path + ".tmp")
        os.replace(path + ".tmp", path)

    def save(self, step, model):
        self.wait()
        state = {k: v.detach().clone() for k, v in model.state_dict().items()}
        self.proc = self.ctx.Process(target=self._write, args=(step, state))
        self.proc.start()

    def wait(self):
        if self.proc is not None:
            self.proc.join()
            self.proc = None
