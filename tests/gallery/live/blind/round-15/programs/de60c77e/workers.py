import logging
import multiprocessing as mp
import queue
import time

import numpy as np

from arena import BallArena

log = logging.getLogger("workers")


def policy(weights, obs, rng):
    h = np.tanh(obs @ weights["w1"] + weights["b1"])
    logits = h @ weights["w2"] + weights["b2"]
    p = np.exp(logits - logits.max())
    p /= p.sum()
    a = int(rng.choice(len(p), p=p))
    return a, float(np.log(p[a] + 1e-9))


def rollout_loop(index, seed, weight_conn, out_queue, quota):
    rng = np.random.default_rng(seed)
    env = BallArena(seed)
    obs = env.observe()
    while True:
        weights = weight_conn.recv()
        if weights is None:
            break
        left = quota
        while left > 0:
            n = min(left, 32)
            traj = {"obs": [], "act": [], "logp": [], "rew": [], "done": []}
            for _ in range(n):
                a, lp = policy(weights, obs, rng)
                nxt, r, d = env.step(a)
                for k, v in zip(traj, (obs, a, lp, r, d)):
                    traj[k].append(v)
                obs = env.reset() if d else nxt
            out_queue.put({k: np.asarray(v, dtype=np.int64 if k == "act" else np.float32) for k, v in traj.items()})
            left -= n


class RolloutPool:
    def __init__(self, n, seed, quota):
        ctx = mp.get_context("spawn")
        self.queue = ctx.Queue(maxsize=64)
        self.conns, self.procs = [], []
        self.total = n * quota
        for i in range(n):
            parent, child = ctx.Pipe()
            p = ctx.Process(target=rollout_loop, args=(i, seed + i, child, self.queue, quota), daemon=True)
            p.start()
            self.conns.append(parent)
            self.procs.append(p)

    def collect(self, weights):
        for c in self.conns:
            c.send(weights)
        parts, have, waited = [], 0, 0.0
        while have < self.total:
            try:
                traj = self.queue.get(timeout=0.5)
            except queue.Empty:
                waited += 0.5
                if waited % 2 == 0:
                    log.info("still waiting for trajectories: %d < %d", have, self.total)
                if not all(p.is_alive() for p in self.procs):
                    raise RuntimeError("a rollout worker has died")
                continue
            parts.append(traj)
            have += len(traj["rew"])
        return parts

    def close(self):
        for c in self.conns:
            c.send(None)
        for p in self.procs:
            p.join(timeout=10)
        time.sleep(0.1)
