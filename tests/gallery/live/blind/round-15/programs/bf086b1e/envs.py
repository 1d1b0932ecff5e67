import torch


class CatchBatch:
    def __init__(self, n, seed, size=48):
        self.n, self.size = n, size
        self.gen = torch.Generator().manual_seed(seed)
        self.reset(torch.ones(n, dtype=torch.bool))

    def reset(self, mask):
        if not hasattr(self, "ball"):
            self.ball = torch.zeros(self.n, 2)
            self.drift = torch.zeros(self.n)
            self.paddle = torch.full((self.n,), self.size / 2)
        k = int(mask.sum())
        self.ball[mask, 0] = 0.0
        self.ball[mask, 1] = torch.rand(k, generator=self.gen) * (self.size - 1)
        self.drift[mask] = torch.rand(k, generator=self.gen) * 2 - 1

    def observe(self):
        grid = torch.arange(self.size, dtype=torch.float32)
        by = torch.exp(-((grid[None] - self.ball[:, :1]) / 2) ** 2)
        bx = torch.exp(-((grid[None] - self.ball[:, 1:]) / 2) ** 2)
        px = torch.exp(-((grid[None] - self.paddle[:, None]) / 3) ** 2)
        ball = by[:, :, None] * bx[:, None, :]
        pad = torch.zeros_like(ball)
        pad[:, -3:, :] = px[:, None, :]
        return torch.stack([ball, pad, ball - pad], 1)

    def step(self, action):
        self.paddle = (self.paddle + (action.float() - 2) * 2).clamp(0, self.size - 1)
        self.ball[:, 0] += 3
        self.ball[:, 1] = (self.ball[:, 1] + self.drift).clamp(0, self.size - 1)
        done = self.ball[:, 0] >= self.size - 1
        reward = torch.where(done, (self.paddle - self.ball[:, 1]).abs().lt(5).float() * 2 - 1, torch.zeros(self.n))
        self.reset(done)
        return self.observe(), reward, done
