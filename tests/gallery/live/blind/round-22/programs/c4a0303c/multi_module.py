import torch
import torch.distributed as dist
import torch.nn as nn


class Policy(nn.Module):
    def __init__(self, obs_dim, hidden, n_act=5):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.pi = nn.Linear(hidden, n_act)

    def loss(self, batch):
        logp = torch.log_softmax(self.pi(self.body(batch["obs"])), -1)
        chosen = logp.gather(1, batch["act"].unsqueeze(1)).squeeze(1)
        entropy = -(logp.exp() * logp).sum(-1).mean()
        return -(chosen * batch["adv"]).mean() - 0.01 * entropy


class MultiModule:
    """Several policies, each with its own optimizer and its own communicator."""

    def __init__(self, specs, lr=3e-4):
        self.modules, self.optims, self.groups = {}, {}, {}
        for name, hidden in specs.items():
            torch.manual_seed(len(name))
            self.modules[name] = Policy(16, hidden)
            self.optims[name] = torch.optim.Adam(self.modules[name].parameters(), lr=lr)
            self.groups[name] = dist.new_group()

    def average_gradients(self, name):
        params = [p for p in self.modules[name].parameters() if p.grad is not None]
        flat = torch.cat([p.grad.reshape(-1) for p in params])
        dist.all_reduce(flat, group=self.groups[name])
        flat /= dist.get_world_size(self.groups[name])
        offset = 0
        for p in params:
            p.grad.copy_(flat[offset : offset + p.numel()].view_as(p))
            offset += p.numel()

    def update(self, multi_batch, minibatch=16):
        stats = {}
        for name, batch in multi_batch.items():
            n = len(batch["adv"])
            total = 0.0
            for lo in range(0, n, minibatch):
                piece = {k: v[lo : lo + minibatch] for k, v in batch.items()}
                loss = self.modules[name].loss(piece)
                self.optims[name].zero_grad()
                loss.backward()
                self.average_gradients(name)
                self.optims[name].step()
                total += loss.item()
            stats[name] = total / (n // minibatch)
        return stats
