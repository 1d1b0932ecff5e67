import numpy as np


class ReachEnv:
    def __init__(self, n, seed, T=50, obs_dim=60, goal_dim=3, act_dim=4):
        self.n, self.T = n, T
        self.rng = np.random.default_rng(seed)
        self.params = {"obs": obs_dim, "goal": goal_dim, "action": act_dim, "max_timesteps": T, "action_max": 1.0}
        self.mix = np.random.default_rng(1).normal(size=(6, obs_dim)).astype(np.float32) * 0.4

    def reset(self):
        self.pos = self.rng.uniform(-1, 1, (self.n, 3)).astype(np.float32)
        self.vel = np.zeros_like(self.pos)
        self.goal = self.rng.uniform(-1, 1, (self.n, 3)).astype(np.float32)
        return self._obs(), self.pos.copy(), self.goal.copy()

    def _obs(self):
        return np.tanh(np.concatenate([self.pos, self.vel], 1) @ self.mix)

    def step(self, a):
        self.vel = 0.7 * self.vel + 0.1 * a[:, :3]
        self.pos = np.clip(self.pos + self.vel, -1.5, 1.5)
        return self._obs(), self.pos.copy()


def compute_reward(ag, g):
    return -(np.linalg.norm(ag - g, axis=-1) > 0.15).astype(np.float32)
