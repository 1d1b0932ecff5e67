import multiprocessing as mp

from env import ToolUseEnv


def act(weights, obs, rng):
    import numpy as np

    w1, b1, w2, b2 = weights
    h = np.tanh(w1 @ np.asarray(obs, dtype="float32") + b1)
    z = w2 @ h + b2
    e = np.exp(z - z.max())
    return int(rng.choice(len(z), p=e / e.sum()))


def worker_loop(wid, seed, tasks, results):
    import numpy as np

    rng = np.random.default_rng(seed)
    env = ToolUseEnv(seed)
    while True:
        weights = tasks.get()
        if weights is None:
            return
        obs, traj = env.reset(), {"obs": [], "act": [], "ret": 0.0}
        done = False
        while not done:
            a = act(weights, obs, rng)
            traj["obs"].append(obs)
            traj["act"].append(a)
            obs, r, done = env.step(a)
            traj["ret"] += r
        results.put(traj)


class RolloutPool:
    def __init__(self, workers, seed):
        ctx = mp.get_context("spawn")
        self.tasks, self.results = ctx.Queue(), ctx.Queue()
        self.procs = [
            ctx.Process(target=worker_loop, args=(i, seed + i, self.tasks, self.results), name=f"rollout-{i}", daemon=True)
            for i in range(workers)
        ]
        for p in self.procs:
            p.start()

    def collect(self, weights, n):
        for _ in range(n):
            self.tasks.put(weights)
        return [self.results.get() for _ in range(n)]

    def close(self):
        for _ in self.procs:
            self.tasks.put(None)
        for p in self.procs:
            p.join()
