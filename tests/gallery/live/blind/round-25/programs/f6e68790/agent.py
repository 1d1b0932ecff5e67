import multiprocessing as mp
import time

import numpy as np

ROLLOUT = 48
OBS_DIM = 512
STEP_COST = {"maze-v1": 0.30, "gridpong-v1": 0.05}


class Agent(mp.Process):
    """Plays one environment and hands finished rollouts to the learner of its rank."""

    def __init__(self, agent_id, task, experience_q, seed):
        super().__init__(name=f"agent-{agent_id}", daemon=True)
        self.agent_id = agent_id
        self.task = task
        self.experience_q = experience_q
        self.seed = seed
        self.exit_flag = mp.Value("i", 0)

    def play(self, rng):
        time.sleep(STEP_COST[self.task] * rng.uniform(0.8, 1.2))
        obs = rng.standard_normal((ROLLOUT, OBS_DIM), dtype=np.float32)
        actions = rng.integers(0, 6, size=ROLLOUT)
        returns = rng.standard_normal(ROLLOUT, dtype=np.float32)
        return obs, actions, returns

    def run(self):
        rng = np.random.default_rng(self.seed)
        while self.exit_flag.value == 0:
            self.experience_q.put((self.agent_id, *self.play(rng)))
