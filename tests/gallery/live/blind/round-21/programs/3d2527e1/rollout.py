import time

import torch


SOURCES = ((0.5, 5.0), (0.8, 1.6))


class PromptPool:
    """Prompts of one data-parallel rank with a difficulty score each."""

    def __init__(self, rank, size=64):
        gen = torch.Generator().manual_seed(70 + rank)
        low, high = SOURCES[rank % len(SOURCES)]
        self.difficulty = low + (high - low) * torch.rand(size, generator=gen)
        self.features = torch.randn(size, 12, generator=gen)
        self.gen = gen

    def draw(self, n):
        return torch.randint(0, len(self.difficulty), (n,), generator=self.gen)


class Sampler:
    def __init__(self, pool, group_size=6, prompts_per_call=4):
        self.pool = pool
        self.group_size = group_size
        self.prompts_per_call = prompts_per_call

    def generate(self, skill):
        """One generation call: prompts and a 0/1 reward for every response of each prompt."""
        time.sleep(0.1)
        idx = self.pool.draw(self.prompts_per_call)
        p = (0.5 + skill - self.pool.difficulty[idx]).clamp(0.0, 1.0)
        p = p.unsqueeze(1).expand(-1, self.group_size)
        rewards = torch.bernoulli(p, generator=self.pool.gen)
        return idx, rewards

    def batch(self, skill, groups):
        kept_idx, kept_rewards = [], []
        while len(kept_idx) < groups:
            idx, rewards = self.generate(skill)
            informative = rewards.std(dim=1) > 0
            kept_idx.extend(idx[informative].tolist())
            kept_rewards.extend(rewards[informative])
        return torch.tensor(kept_idx[:groups]), torch.stack(kept_rewards[:groups])
