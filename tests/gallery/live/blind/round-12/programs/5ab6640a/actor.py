import queue

import numpy as np

from envs import PointMass

CHUNK = 16


def policy(w, obs, rng):
    h = np.tanh(w["0.weight"] @ obs + w["0.bias"])
    z = w["2.weight"] @ h + w["2.bias"]
    p = np.exp(z - z.max())
    return int(rng.choice(len(p), p=p / p.sum()))


def offer(rollouts, item, stop):
    while not stop.is_set():
        try:
            rollouts.put(item, timeout=0.5)
            return
        except queue.Full:
            continue


def latest(params, weights):
    while True:
        try:
            weights = params.get_nowait()
        except queue.Empty:
            return weights


def run_actor(seed, rollouts, params, stop):
    rng = np.random.default_rng(seed)
    env = PointMass(seed)
    weights = params.get()
    while not stop.is_set():
        obs, done = env.reset(), False
        o, a, r = [], [], []
        while not done and not stop.is_set():
            act = policy(weights, obs, rng)
            o.append(obs)
            a.append(act)
            obs, rew, done = env.step(act)
            r.append(rew)
            if len(o) == CHUNK or done:
                offer(rollouts, (np.array(o, np.float32), np.array(a), np.array(r, np.float32)), stop)
                o, a, r = [], [], []
                weights = latest(params, weights)
