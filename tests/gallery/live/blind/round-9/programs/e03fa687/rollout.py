import torch


class VectorEnv:
    """A batch of small linear control tasks."""

    def __init__(self, n, obs=24, act=6, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.A = torch.linalg.qr(torch.randn(obs, obs, generator=g))[0] * 0.97
        self.B = torch.randn(act, obs, generator=g) * 0.3
        self.state = torch.randn(n, obs, generator=g)

    def step(self, action):
        self.state = self.state @ self.A + self.B[action] + 0.02 * torch.randn_like(self.state)
        reward = -self.state.pow(2).mean(-1)
        return self.state.clone(), reward


@torch.no_grad()
def collect(env, model, horizon):
    obs, acts, logps, rews, vals = [], [], [], [], []
    x = env.state.clone()
    for _ in range(horizon):
        dist, v = model(x)
        a = dist.sample()
        obs.append(x); acts.append(a); logps.append(dist.log_prob(a)); vals.append(v)
        x, r = env.step(a)
        rews.append(r)
    ret, acc = [], model(x)[1]
    for r in reversed(rews):
        acc = r + 0.97 * acc
        ret.append(acc)
    stack = lambda t: torch.cat(t)
    return stack(obs), stack(acts), stack(logps), stack(ret[::-1]), stack(vals), torch.stack(rews).mean()
