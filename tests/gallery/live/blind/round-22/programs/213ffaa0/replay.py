import torch

STATE = 16


class Replay:
    """Keeps the best trajectories seen so far, ordered by log reward."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.states = torch.empty(0, STATE)
        self.log_reward = torch.empty(0)

    def __len__(self):
        return len(self.log_reward)

    def extend(self, states, log_reward):
        self.states = torch.cat([self.states, states])
        self.log_reward = torch.cat([self.log_reward, log_reward])
        order = torch.argsort(self.log_reward, descending=True)[: self.capacity]
        self.states = self.states[order]
        self.log_reward = self.log_reward[order]

    def add_trajectories(self, states, log_reward):
        for s, r in zip(states, log_reward):
            self.extend(s.unsqueeze(0), r.unsqueeze(0))

    def sample(self, n):
        idx = torch.randint(0, max(len(self), 1), (n,))
        return self.states[idx]
