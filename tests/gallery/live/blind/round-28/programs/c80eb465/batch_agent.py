import threading

import torch
import torch.distributed.rpc as rpc
import torch.nn as nn


class Policy(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, hidden), nn.ReLU(), nn.Linear(hidden, 2))

    def forward(self, x):
        return torch.log_softmax(self.net(x), dim=-1)


class Agent:
    """Collects one observation of every observer that still plays and answers them together."""

    def __init__(self, n_observers, lr=5e-3):
        self.policy = Policy()
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=lr)
        self.lock = threading.Lock()
        self.n_observers = n_observers
        self.begin_episode()

    def begin_episode(self):
        self.playing = set(range(self.n_observers))
        self.waiting = {}
        self.future = torch.futures.Future()
        self.log_probs = {i: [] for i in range(self.n_observers)}
        self.rewards = {i: [] for i in range(self.n_observers)}

    def _answer_if_complete(self):
        if not self.waiting or set(self.waiting) != self.playing:
            return None
        ids = sorted(self.waiting)
        log_probs = self.policy(torch.tensor([self.waiting[i] for i in ids]))
        actions = torch.multinomial(log_probs.exp().detach(), 1).squeeze(1)
        for row, i in enumerate(ids):
            self.log_probs[i].append(log_probs[row, actions[row]])
        fut, self.future, self.waiting = self.future, torch.futures.Future(), {}
        return fut, dict(zip(ids, actions.tolist()))

    @staticmethod
    @rpc.functions.async_execution
    def select_action(agent_rref, observer_id, state, reward):
        self = agent_rref.local_value()
        with self.lock:
            if reward is not None:
                self.rewards[observer_id].append(reward)
            self.waiting[observer_id] = state
            fut = self.future
            ready = self._answer_if_complete()
        if ready:
            ready[0].set_result(ready[1])
        return fut

    @staticmethod
    def finish(agent_rref, observer_id, reward):
        self = agent_rref.local_value()
        with self.lock:
            self.rewards[observer_id].append(reward)
            self.playing.discard(observer_id)
            ready = self._answer_if_complete()
        if ready:
            ready[0].set_result(ready[1])

    def learn(self, gamma=0.98):
        losses, total = [], 0.0
        for i in range(self.n_observers):
            acc, returns = 0.0, []
            for r in reversed(self.rewards[i]):
                acc = r + gamma * acc
                returns.append(acc)
            returns = torch.tensor(returns[::-1])
            losses.append(-(torch.stack(self.log_probs[i]) * returns).sum())
            total += sum(self.rewards[i])
        loss = torch.stack(losses).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item(), total / self.n_observers
