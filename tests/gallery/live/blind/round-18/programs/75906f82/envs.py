import multiprocessing as mp
import random

import torch


class Lander:
    """One-dimensional lander, episodes end after 15 to 120 steps."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.reset()

    def reset(self):
        self.h = self.rng.uniform(5, 20)
        self.v = self.rng.uniform(-1, 1)
        self.fuel = self.rng.randint(15, 120)
        return [self.h / 20, self.v / 5, self.fuel / 120]

    def step(self, thrust):
        self.v += -0.15 + 0.1 * thrust
        self.h += self.v * 0.5
        self.fuel -= 1
        done = self.h <= 0 or self.fuel <= 0
        reward = 0.0
        if done:
            reward = 1.0 if self.h <= 0 and abs(self.v) < 0.8 else -1.0
        obs = [self.h / 20, self.v / 5, self.fuel / 120]
        return (self.reset() if done else obs), reward, done


def _serve(conn, seeds):
    envs = [Lander(s) for s in seeds]
    conn.send([e.reset() for e in envs])
    while True:
        acts = conn.recv()
        if acts is None:
            return
        conn.send([e.step(a) for e, a in zip(envs, acts)])


class VecEnv:
    def __init__(self, n, seed):
        ctx = mp.get_context("fork")
        self.conn, theirs = ctx.Pipe()
        self.proc = ctx.Process(target=_serve, args=(theirs, [seed + i for i in range(n)]), daemon=True)
        self.proc.start()
        theirs.close()
        self.obs = torch.tensor(self.conn.recv())

    def step(self, acts):
        self.conn.send(acts.tolist())
        o, r, d = zip(*self.conn.recv())
        self.obs = torch.tensor(o)
        return self.obs, torch.tensor(r), torch.tensor(d)
