import multiprocessing as mp
import os
import threading
import time

import numpy as np
import torch
from filelock import FileLock


def synth(args):
    seed, length = args
    rng = np.random.default_rng(seed)
    t = np.arange(length)[:, None]
    f = rng.uniform(0.01, 0.4, (1, 20))
    return (np.sin(t * f) + 0.2 * rng.standard_normal((length, 20))).astype(np.float32)


class FeatureCache:
    """Blocks of utterances, built once by whichever rank comes first."""

    def __init__(self, root, pool):
        self.root, self.pool = root, pool

    def block(self, i, n=200):
        path = os.path.join(self.root, f"block-{i:04d}.npz")
        with FileLock(path + ".lock"):
            if not os.path.exists(path):
                rng = np.random.default_rng(i)
                jobs = [(i * 10_000 + k, int(rng.integers(40, 161))) for k in range(n)]
                feats = self.pool.map(synth, jobs, chunksize=20)
                np.savez(path + ".tmp.npz", *feats)
                os.replace(path + ".tmp.npz", path)
        with np.load(path) as z:
            return [z[k] for k in z.files]


class Saver:
    def __init__(self, root):
        self.root, self.cv, self.todo = root, threading.Condition(), None
        threading.Thread(target=self._run, daemon=True, name="saver").start()

    def submit(self, step, state):
        with self.cv:
            self.todo = (step, {k: v.clone() for k, v in state.items()})
            self.cv.notify()

    def _run(self):
        while True:
            with self.cv:
                while self.todo is None:
                    self.cv.wait()
                step, state = self.todo
                self.todo = None
            torch.save({"step": step, "model": state}, os.path.join(self.root, "latest.tmp"))
            os.replace(os.path.join(self.root, "latest.tmp"), os.path.join(self.root, "latest.pt"))


def make_pool():
    return mp.get_context("fork").Pool(1)
