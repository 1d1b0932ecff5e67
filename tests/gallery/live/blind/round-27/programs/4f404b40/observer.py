import random
import time

import torch
import torch.distributed.rpc as rpc


class Observer:
    def __init__(self):
        self.id = rpc.get_worker_info().id
        self.rng = random.Random(self.id)
        self.state = torch.zeros(8)

    def _env_step(self, action):
        time.sleep(self.rng.choice([0.02, 0.03, 0.15]))
        self.state = 0.9 * self.state + 0.1 * torch.randn(8) + 0.05 * action
        return self.state, float(-self.state.pow(2).sum())

    def run_episode(self, agent_rref, horizon):
        self.state = torch.randn(8)
        total = 0.0
        for _ in range(horizon):
            action = agent_rref.rpc_sync().select_action(self.id, self.state)
            _, reward = self._env_step(action)
            agent_rref.rpc_sync().report_reward(self.id, reward)
            total += reward
        return total
