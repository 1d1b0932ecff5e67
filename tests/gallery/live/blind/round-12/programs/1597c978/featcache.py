import contextlib
import fcntl
import multiprocessing
import os
import time

import torch


@contextlib.contextmanager
def locked(path, mode):
    handle = open(path, "a+")
    fcntl.flock(handle, mode)
    try:
        yield
    finally:
        handle.close()


def sweep(folder, keep, interval=5.0):
    while os.getppid() != 1:
        files = sorted(f for f in os.listdir(folder) if f.startswith("feat-"))
        for old in files[:-keep]:
            os.remove(os.path.join(folder, old))
        time.sleep(interval)


class FeatureCache:
    """Teacher features on disk: written by one rank, read by all."""

    def __init__(self, folder, keep=3):
        self.folder, self.keep = folder, keep
        self.lock = os.path.join(folder, ".lock")
        self.sweeper = None

    def path(self, rnd):
        return os.path.join(self.folder, f"feat-{rnd:04d}.pt")

    def _start_sweeper(self):
        ctx = multiprocessing.get_context("fork")
        self.sweeper = ctx.Process(target=sweep, args=(self.folder, self.keep), daemon=True)
        self.sweeper.start()

    def write(self, rnd, features):
        with locked(self.lock, fcntl.LOCK_EX):
            if rnd > 0 and self.sweeper is None:
                self._start_sweeper()
            tmp = self.path(rnd) + ".tmp"
            torch.save(features, tmp)
            os.replace(tmp, self.path(rnd))

    def read(self, rnd):
        with locked(self.lock, fcntl.LOCK_SH):
            return torch.load(self.path(rnd))
