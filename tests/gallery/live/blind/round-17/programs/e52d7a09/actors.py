import multiprocessing as mp
import queue
import time

import numpy as np


class Pendulum:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.reset()

    def reset(self):
        self.th, self.om, self.t = self.rng.uniform(-np.pi, np.pi), self.rng.uniform(-1, 1), 0
        return self.obs()

    def obs(self):
        return np.array([np.cos(self.th), np.sin(self.th), self.om / 8, self.t / 200], np.float32)

    def step(self, u):
        u = float(np.clip(u, -2, 2))
        r = -(((self.th + np.pi) % (2 * np.pi) - np.pi) ** 2 + 0.1 * self.om ** 2 + 0.001 * u * u)
        for _ in range(5):
            self.om = np.clip(self.om + (15 * np.sin(self.th) + 3 * u) * 0.01, -8, 8)
            self.th += self.om * 0.01
        self.t += 1
        done = self.t >= 200
        return (self.reset() if done else self.obs()), r, done


def actor_main(aid, weight_q, traj_q, unroll):
    env, rng = Pendulum(aid), np.random.default_rng(aid)
    w = weight_q.get()
    obs = env.reset()
    while True:
        try:
            while True:
                w = weight_q.get_nowait()
        except queue.Empty:
            pass
        O, A, R, D = [], [], [], []
        for _ in range(unroll):
            h = np.tanh(obs @ w[0] + w[1])
            a = float((h @ w[2] + w[3])[0] + 0.3 * rng.standard_normal())
            nobs, r, d = env.step(a)
            O.append(obs); A.append(a); R.append(r); D.append(d)
            obs = nobs
            time.sleep(0.0015)
        traj_q.put((np.stack(O), np.array(A, np.float32), np.array(R, np.float32), np.array(D, np.float32), obs))


class ActorPool:
    def __init__(self, n, unroll, base):
        ctx = mp.get_context("fork")
        self.traj_q = ctx.Queue(4 * n)
        self.weight_qs = [ctx.Queue() for _ in range(n)]
        self.procs = [ctx.Process(target=actor_main, args=(base + i, q, self.traj_q, unroll), daemon=True)
                      for i, q in enumerate(self.weight_qs)]
        for p in self.procs:
            p.start()

    def publish(self, weights):
        for q in self.weight_qs:
            q.put(weights)

    def gather(self, n):
        out = []
        while len(out) < n:
            try:
                out.append(self.traj_q.get(timeout=0.05))
            except queue.Empty:
                if not all(p.is_alive() for p in self.procs):
                    raise RuntimeError("an actor has died")
        return out
