import threading

import torch
import torch.nn as nn

from envs import PointMass

_server = None


class ActionBatch:
    def __init__(self):
        self.obs = []
        self.actions = None


class PolicyServer:
    """Evaluates the policy for all environments of an iteration in one forward pass."""

    def __init__(self, lr=3e-3):
        self.net = nn.Sequential(
            nn.Linear(PointMass.obs_dim, 128), nn.Tanh(),
            nn.Linear(128, 128), nn.Tanh(),
            nn.Linear(128, PointMass.n_actions),
        )
        self.opt = torch.optim.Adam(self.net.parameters(), lr=lr)
        self.cond = threading.Condition()
        self.n_envs = 0
        self.batch = ActionBatch()

    def begin(self, n_envs):
        with self.cond:
            self.n_envs = n_envs
            self.batch = ActionBatch()

    @torch.no_grad()
    def _evaluate(self, batch):
        logits = self.net(torch.stack(batch.obs))
        batch.actions = torch.distributions.Categorical(logits=logits).sample().tolist()

    def act(self, obs):
        with self.cond:
            batch, idx = self.batch, len(self.batch.obs)
            batch.obs.append(obs)
            if len(batch.obs) == self.n_envs:
                self._evaluate(batch)
                self.batch = ActionBatch()
                self.cond.notify_all()
            else:
                self.cond.wait_for(lambda: batch.actions is not None)
        return batch.actions[idx]

    def update(self, obs, actions, returns):
        logp = torch.distributions.Categorical(logits=self.net(obs)).log_prob(actions)
        adv = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = -(logp * adv).mean()
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.opt.step()
        return float(loss)


def create_server():
    global _server
    _server = PolicyServer()
    return _server


def select_action(obs):
    return _server.act(obs)
