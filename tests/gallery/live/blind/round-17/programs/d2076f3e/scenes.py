import os

import numpy as np

LEVELS = {0: 0.10, 1: 0.30, 2: 0.50, 3: 0.72}


def build_library(root, n_scenes=48, size=24):
    os.makedirs(root, exist_ok=True)
    for sid in range(n_scenes):
        rng = np.random.default_rng(9000 + sid)
        level = sid * len(LEVELS) // n_scenes
        density = LEVELS[level]
        if sid % 12 == 10 and level == 3:
            density = 1.0
        grid = (rng.random((size, size)) < density).astype(np.int8)
        np.savez(os.path.join(root, f"scene_{sid:03d}.npz"), grid=grid, level=level)
    open(os.path.join(root, "READY"), "w").close()


class SceneSplit:
    def __init__(self, root, rank, world):
        names = sorted(n for n in os.listdir(root) if n.endswith(".npz"))
        self.paths = [os.path.join(root, n) for i, n in enumerate(names) if i % world == rank]
        self.levels = [int(np.load(p)["level"]) for p in self.paths]

    def sample(self, max_level, rng):
        ids = [i for i, l in enumerate(self.levels) if l <= max_level]
        return np.load(self.paths[ids[rng.integers(len(ids))]])["grid"]
