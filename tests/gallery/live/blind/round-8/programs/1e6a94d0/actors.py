import numpy as np


class LineWorld:
    """Walk to the goal on a line; later levels put the goal further out."""

    def __init__(self, level, slip, seed):
        self.goal = 4 + 3 * level
        self.slip = slip
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.pos, self.t = 0, 0
        return self.obs()

    def obs(self):
        return np.array([self.pos / 10, self.goal / 10, self.t / 40, 1.0], dtype=np.float32)

    def step(self, action):
        move = 1 if action == 1 else -1
        if self.rng.random() < self.slip:
            move = -move
        self.pos += move
        self.t += 1
        done = self.pos >= self.goal or self.t >= 40
        return self.obs(), 1.0 if self.pos >= self.goal else -0.01, done


def policy(weights, obs, rng):
    w1, b1, w2, b2 = weights
    h = np.tanh(obs @ w1.T + b1)
    z = h @ w2.T + b2
    p = np.exp(z - z.max())
    p /= p.sum()
    return int(rng.random() < p[1])


def actor_loop(index, level, slip, seed, tasks, results):
    env = LineWorld(level, slip, seed)
    rng = np.random.default_rng(seed + 1)
    while True:
        weights, episodes = tasks.get()
        batch, total = [], 0.0
        for _ in range(episodes):
            obs, done, rewards, traj = env.reset(), False, [], []
            while not done:
                a = policy(weights, obs, rng)
                nxt, r, done = env.step(a)
                traj.append((obs, a))
                rewards.append(r)
                obs = nxt
            ret = 0.0
            for (o, a), r in zip(reversed(traj), reversed(rewards)):
                ret = r + 0.98 * ret
                batch.append((o, a, ret))
            total += sum(rewards)
        results.put((index, batch, total / episodes))
