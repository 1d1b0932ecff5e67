import queue
import time
from dataclasses import dataclass, field

import numpy as np

from maze_env import MazeEnv


@dataclass
class TrajInfo:
    length: int = 0
    reward: float = 0.0
    coverage: np.ndarray = field(default=None)


def drain_queue(q):
    items = []
    while True:
        try:
            items.append(q.get_nowait())
        except queue.Empty:
            return items


def collect_worker(worker_id, env_name, difficulty, horizon, samples, ctrl, traj_infos_queue):
    env = MazeEnv(env_name, difficulty, seed=17 * worker_id + 3)
    buf = np.frombuffer(samples, dtype=np.float32).reshape(-1, horizon, env.obs_dim + 2)
    obs, info = env.reset(), TrajInfo()
    while True:
        ctrl["barrier_in"].wait()
        if ctrl["quit"].value:
            break
        for t in range(horizon):
            action = int(env.rng.integers(0, 4))
            nxt, reward, done = env.step(action)
            buf[worker_id, t, :-2], buf[worker_id, t, -2], buf[worker_id, t, -1] = obs, action, reward
            info.length, info.reward = info.length + 1, info.reward + reward
            obs = nxt
            if done or info.length >= 200:
                traj_infos_queue.put(info)
                obs, info = env.reset(), TrajInfo()
        time.sleep(0.04)
        ctrl["barrier_out"].wait()
    info.coverage = env.visits
    traj_infos_queue.put(info)


class ParallelSampler:
    def __init__(self, ctx, env_name, difficulty, n_workers=2, horizon=64):
        self.n_workers, self.horizon = n_workers, horizon
        self.samples = ctx.RawArray("f", n_workers * horizon * (MazeEnv.obs_dim + 2))
        self.ctrl = {"quit": ctx.Value("b", 0), "barrier_in": ctx.Barrier(n_workers + 1),
                     "barrier_out": ctx.Barrier(n_workers + 1)}
        self.traj_infos_queue = ctx.Queue()
        self.workers = [ctx.Process(target=collect_worker, name=f"sampler-{i}",
                                    args=(i, env_name, difficulty, horizon, self.samples, self.ctrl,
                                          self.traj_infos_queue))
                        for i in range(n_workers)]
        for w in self.workers:
            w.start()

    def obtain_samples(self):
        self.ctrl["barrier_in"].wait()
        self.ctrl["barrier_out"].wait()
        batch = np.frombuffer(self.samples, dtype=np.float32).reshape(-1, MazeEnv.obs_dim + 2).copy()
        return batch, drain_queue(self.traj_infos_queue)

    def shutdown(self):
        self.ctrl["quit"].value = 1
        self.ctrl["barrier_in"].wait()
        for w in self.workers:
            w.join()
        return drain_queue(self.traj_infos_queue)
