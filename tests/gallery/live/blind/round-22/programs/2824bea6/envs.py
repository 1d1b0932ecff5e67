import random
import time


class GridMaze:
    """Episodes of very different length; a long one holds up its worker only."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def episode(self, epsilon):
        length = self.rng.choice([5, 8, 12, 20, 45])
        steps = []
        for _ in range(length):
            time.sleep(0.012)
            obs = [self.rng.gauss(0, 1) for _ in range(8)]
            action = self.rng.randrange(4) if self.rng.random() < epsilon else 0
            steps.append((obs, action, self.rng.random()))
        return steps


def rollout_worker(seed, requests, episodes):
    env = GridMaze(seed)
    while True:
        epsilon = requests.get()
        if epsilon is None:
            break
        episodes.put(env.episode(epsilon))


def video_worker(jobs):
    while True:
        name = jobs.get()
        if name is None:
            break
        time.sleep(20)
