import queue

import numpy as np

from envs import TASKS

CHUNK = 16


def policy(w, obs, rng):
    h = np.tanh(w["0.weight"] @ obs + w["0.bias"])
    z = w["2.weight"] @ h + w["2.bias"]
    p = np.exp(z - z.max())
    return int(rng.choice(len(p), p=p / p.sum()))


def run_actor(task, seed, rollouts, params):
    rng = np.random.default_rng(seed)
    env = TASKS[task](seed)
    weights = params.get()
    while True:
        obs, done, ret = env.reset(), False, 0.0
        o, a, r = [], [], []
        while not done:
            act = policy(weights, obs, rng)
            o.append(obs)
            a.append(act)
            obs, rew, done = env.step(act)
            r.append(rew)
            ret += rew
            if len(o) == CHUNK or done:
                rollouts.put((np.array(o, np.float32), np.array(a), np.array(r, np.float32), ret if done else None))
                o, a, r = [], [], []
        try:
            while True:
                weights = params.get_nowait()
        except queue.Empty:
            pass
