import multiprocessing as mp

import numpy as np


def worker(remote, make):
    env = make()
    while True:
        cmd, data = remote.recv()
        if cmd == "step":
            remote.send(env.step(data))
        elif cmd == "reset":
            remote.send(env.reset())
        elif cmd == "close":
            remote.close()
            break


class SubprocVecEnv:
    def __init__(self, makers):
        self.remotes, self.work_remotes = zip(*[mp.Pipe() for _ in makers])
        self.ps = [mp.Process(target=worker, args=(w, m), daemon=True) for w, m in zip(self.work_remotes, makers)]
        for p in self.ps:
            p.start()

    def step_async(self, actions):
        for r, a in zip(self.remotes, actions):
            r.send(("step", int(a)))

    def step_wait(self):
        obs, rew, done = zip(*[r.recv() for r in self.remotes])
        return np.stack(obs), np.array(rew, "float32"), np.array(done)

    def step(self, actions):
        self.step_async(actions)
        return self.step_wait()

    def reset(self):
        for r in self.remotes:
            r.send(("reset", None))
        return np.stack([r.recv() for r in self.remotes])
