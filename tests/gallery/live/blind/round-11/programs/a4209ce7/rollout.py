from dataclasses import dataclass

import torch


@dataclass
class Sample:
    prompt: int
    tokens: torch.Tensor
    advantage: float


class RolloutBuffer:
    def __init__(self, prompts, group, vocab, seed):
        self.prompts, self.group, self.vocab = prompts, group, vocab
        self.g = torch.Generator().manual_seed(seed)

    def collect(self):
        out = []
        difficulty = torch.arange(self.prompts).float() / (self.prompts - 1)
        for p in range(self.prompts):
            base = 32 + 330 * difficulty[p] ** 2
            rewards = torch.rand(self.group, generator=self.g)
            adv = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
            for k in range(self.group):
                n = int(base * (0.9 + 0.2 * torch.rand(1, generator=self.g)))
                out.append(Sample(p, torch.randint(0, self.vocab, (n,), generator=self.g), adv[k].item()))
        return out


def scatter(samples, rank, world):
    per = len(samples) // world
    return samples[rank * per:(rank + 1) * per]


def pad(samples):
    n = max(len(s.tokens) for s in samples)
    ids = torch.zeros(len(samples), n, dtype=torch.long)
    mask = torch.zeros(len(samples), n)
    for i, s in enumerate(samples):
        ids[i, :len(s.tokens)] = s.tokens
        mask[i, :len(s.tokens)] = 1
    return ids, mask, torch.tensor([s.advantage for s in samples])
