import copy

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from .buffer import HerSampler, ReplayBuffer
from .env import compute_reward


def mlp(i, o, h=192):
    return nn.Sequential(nn.Linear(i, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, o))


def sync_networks(net):
    for p in net.parameters():
        dist.broadcast(p.data, src=0)


def sync_grads(net):
    flat = torch.cat([p.grad.flatten() for p in net.parameters()])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    i = 0
    for p in net.parameters():
        p.grad.copy_(flat[i:i + p.numel()].view_as(p))
        i += p.numel()


class DDPGAgent:
    def __init__(self, env_params, buffer_size, batch_size=256, gamma=0.98, polyak=0.95, lr=1e-3):
        self.p, self.batch_size, self.gamma, self.polyak = env_params, batch_size, gamma, polyak
        self.actor = mlp(env_params["obs"] + env_params["goal"], env_params["action"])
        self.critic = mlp(env_params["obs"] + env_params["goal"] + env_params["action"], 1)
        sync_networks(self.actor)
        sync_networks(self.critic)
        self.actor_target = copy.deepcopy(self.actor)
        self.critic_target = copy.deepcopy(self.critic)
        self.actor_optim = torch.optim.Adam(self.actor.parameters(), lr=lr)
        self.critic_optim = torch.optim.Adam(self.critic.parameters(), lr=lr)
        self.buffer = ReplayBuffer(env_params, buffer_size, HerSampler(4, compute_reward))

    @torch.no_grad()
    def act(self, obs, g, noise=0.2, eps=0.3):
        a = torch.tanh(self.actor(torch.from_numpy(np.concatenate([obs, g], 1)))).numpy()
        a = np.clip(a + noise * np.random.randn(*a.shape), -1, 1)
        rand = np.random.uniform(-1, 1, a.shape)
        pick = np.random.binomial(1, eps, (len(a), 1))
        return (a + pick * (rand - a)).astype(np.float32)

    def collect(self, env, noise=0.2, eps=0.3):
        obs, ag, g = env.reset()
        o_, ag_, g_, a_ = [obs], [ag], [], []
        for _ in range(env.T):
            a = self.act(obs, g, noise, eps)
            obs, ag = env.step(a)
            o_.append(obs)
            ag_.append(ag)
            g_.append(g)
            a_.append(a)
        success = float((compute_reward(ag, g) == 0).mean())
        return [np.stack(x, 1) for x in (o_, ag_, g_, a_)], success

    def update(self):
        tr = self.buffer.sample(self.batch_size)
        f = lambda *ks: torch.from_numpy(np.concatenate([tr[k] for k in ks], 1))
        x, xn = f("obs", "g"), f("obs_next", "g")
        a, r = f("actions"), f("r")
        with torch.no_grad():
            an = torch.tanh(self.actor_target(xn))
            q_next = self.critic_target(torch.cat([xn, an], 1))
            target = (r + self.gamma * q_next).clamp(-1 / (1 - self.gamma), 0)
        critic_loss = (target - self.critic(torch.cat([x, a], 1))).pow(2).mean()
        pi = torch.tanh(self.actor(x))
        actor_loss = -self.critic(torch.cat([x, pi], 1)).mean() + pi.pow(2).mean()
        self.actor_optim.zero_grad()
        actor_loss.backward()
        sync_grads(self.actor)
        self.actor_optim.step()
        self.critic_optim.zero_grad()
        critic_loss.backward()
        sync_grads(self.critic)
        self.critic_optim.step()
        return critic_loss.item()

    @torch.no_grad()
    def soft_update(self):
        for t, s in ((self.actor_target, self.actor), (self.critic_target, self.critic)):
            for pt, ps in zip(t.parameters(), s.parameters()):
                pt.lerp_(ps, 1 - self.polyak)
