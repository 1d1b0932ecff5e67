import queue
import time

import numpy as np

SPECS = {
    "joints": {"shape": (12,), "unroll": 64},
    "camera": {"shape": (3, 24, 24), "unroll": 64},
}


class Env:
    def __init__(self, kind, difficulty, seed):
        self.spec = SPECS[kind]
        self.rng = np.random.default_rng(seed)
        self.difficulty = difficulty

    def unroll(self):
        n, shape = self.spec["unroll"], self.spec["shape"]
        obs = self.rng.standard_normal((n, *shape), dtype=np.float32)
        reward = (self.rng.random(n) > 0.2 * self.difficulty).astype(np.float32)
        time.sleep(0.15)
        return obs, self.rng.integers(0, 4, n), reward


def act(kind, difficulty, seed, unrolls, stop):
    env = Env(kind, difficulty, seed)
    while not stop.is_set():
        item = env.unroll()
        while not stop.is_set():
            try:
                unrolls.put(item, timeout=0.5)
                break
            except queue.Full:
                continue
