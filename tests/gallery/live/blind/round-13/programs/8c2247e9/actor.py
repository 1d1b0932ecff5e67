import queue

import torch
import torch.nn as nn

OBS, ACT = 12, 4


def make_policy():
    return nn.Sequential(nn.Linear(OBS, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, ACT + 1))


class Corridor:
    """Episodes end when the walker leaves the corridor, so their lengths differ a lot."""

    def __init__(self, n, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.n = n
        self.x = torch.zeros(n)
        self.feat = torch.randn(n, OBS - 1, generator=self.g)

    def obs(self):
        return torch.cat([self.x[:, None], self.feat], 1)

    def step(self, a):
        push = (a.float() - 1.5) * 0.3
        self.x = self.x + push + 0.2 * torch.randn(self.n, generator=self.g)
        done = self.x.abs() > 3
        reward = 1 - self.x.abs() / 3
        self.x = torch.where(done, torch.zeros_like(self.x), self.x)
        self.feat = 0.9 * self.feat + 0.1 * torch.randn(self.n, OBS - 1, generator=self.g)
        return reward, done


def actor_main(seed, shared, version, out, stop, horizon, n_envs):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    env, net, seen = Corridor(n_envs, seed), make_policy(), -1
    while not stop.is_set():
        if version.value != seen:
            seen = version.value
            net.load_state_dict(shared.state_dict())
        traj = []
        with torch.no_grad():
            for _ in range(horizon):
                o = env.obs()
                dist = torch.distributions.Categorical(logits=net(o)[:, :ACT])
                a = dist.sample()
                r, d = env.step(a)
                traj.append((o, a, dist.log_prob(a), r, d.float()))
        batch = [torch.stack(x).numpy() for x in zip(*traj)]
        while not stop.is_set():
            try:
                out.put((seen, batch), timeout=0.5)
                break
            except queue.Full:
                continue
