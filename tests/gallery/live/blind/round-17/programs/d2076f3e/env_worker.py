import multiprocessing as mp

import numpy as np

from scenes import SceneSplit

MOVES = np.array([[0, 1], [1, 0], [0, -1], [-1, 0], [0, 0]])


class NavEnv:
    def __init__(self, split, seed):
        self.split = split
        self.rng = np.random.default_rng(seed)
        self.level = 0
        self.t = 0

    def reset(self):
        self.grid = self.split.sample(self.level, self.rng)
        free = np.argwhere(self.grid == 0)
        self.pos = free[self.rng.integers(len(free))].copy()
        self.goal = free[self.rng.integers(len(free))]
        self.t = 0
        return self.observe()

    def observe(self):
        pad = np.pad(self.grid, 3, constant_values=1)
        y, x = self.pos
        view = pad[y:y + 7, x:x + 7].astype(np.float32).ravel()
        return np.concatenate([view, (self.goal - self.pos) / self.grid.shape[0]]).astype(np.float32)

    def step(self, action):
        before = np.abs(self.goal - self.pos).sum()
        nxt = self.pos + MOVES[action]
        if (nxt >= 0).all() and (nxt < self.grid.shape[0]).all() and self.grid[tuple(nxt)] == 0:
            self.pos = nxt
        after = np.abs(self.goal - self.pos).sum()
        self.t += 1
        done = after == 0 or self.t >= 40
        reward = float(before - after) * 0.1 + float(after == 0)
        obs = self.reset() if done else self.observe()
        return obs, reward, done


def _serve(cmd_q, result_q, scene_root, rank, world, n_envs):
    split = SceneSplit(scene_root, rank, world)
    envs = [NavEnv(split, seed=rank * 1000 + i) for i in range(n_envs)]
    while True:
        cmd, arg = cmd_q.get()
        if cmd == "reset":
            result_q.put(np.stack([e.reset() for e in envs]))
        elif cmd == "step":
            obs, rew, done = zip(*(e.step(a) for e, a in zip(envs, arg)))
            result_q.put((np.stack(obs), np.array(rew, np.float32), np.array(done)))
        elif cmd == "set_level":
            for e in envs:
                e.level = arg
        elif cmd == "close":
            break


class SubprocEnv:
    """The simulator lives in a process of its own, next to the learner."""

    def __init__(self, scene_root, rank, world, n_envs):
        ctx = mp.get_context("spawn")
        self.cmd_q, self.result_q = ctx.Queue(), ctx.Queue()
        self.proc = ctx.Process(
            target=_serve, args=(self.cmd_q, self.result_q, scene_root, rank, world, n_envs), daemon=True
        )
        self.proc.start()

    def reset(self):
        self.cmd_q.put(("reset", None))
        return self.result_q.get()

    def step(self, actions):
        self.cmd_q.put(("step", actions))
        return self.result_q.get()

    def set_level(self, level):
        self.cmd_q.put(("set_level", level))

    def close(self):
        self.cmd_q.put(("close", None))
        self.proc.join()
