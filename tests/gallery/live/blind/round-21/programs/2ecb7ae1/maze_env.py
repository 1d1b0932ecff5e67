import numpy as np

MAZES = {"courtyard": 24, "warehouse": 176}
MOVES = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])


class MazeEnv:
    obs_dim = 6

    def __init__(self, name, difficulty, seed):
        self.size = MAZES[name]
        self.rng = np.random.default_rng(seed)
        self.walls = self.rng.random((self.size, self.size)) < 0.05 * difficulty
        self.visits = np.zeros((self.size, self.size), dtype=np.float32)
        self.reset()

    def reset(self):
        self.pos = self.rng.integers(0, self.size, 2)
        self.goal = self.rng.integers(0, self.size, 2)
        return self._obs()

    def _obs(self):
        delta = (self.goal - self.pos) / self.size
        return np.array([*delta, *np.abs(delta), *(self.pos / self.size)], dtype=np.float32)

    def step(self, action):
        nxt = np.clip(self.pos + MOVES[action], 0, self.size - 1)
        if not self.walls[tuple(nxt)]:
            self.pos = nxt
        self.visits[tuple(self.pos)] += 1
        dist = np.abs(self.goal - self.pos).sum()
        return self._obs(), -float(dist) / self.size, bool(dist == 0)
