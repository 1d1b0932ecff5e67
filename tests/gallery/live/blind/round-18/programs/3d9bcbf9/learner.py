import os
import threading

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


def qnet(n=12, width=96):
    return nn.Sequential(nn.Linear(2 * n, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3))


class Learner:
    """Lives on a learner process, driven by the trainer through RPC."""

    def __init__(self, index, ranks):
        self.index = index
        self.ranks = ranks
        self.group = _group
        self.net = qnet()
        self.target = qnet()
        self._sync(self.net)
        self.target.load_state_dict(self.net.state_dict())
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        self.updates = 0
        self.lock = threading.Lock()

    def _sync(self, module):
        for p in module.parameters():
            dist.broadcast(p.data, src=self.ranks[0], group=self.group)

    def update(self, batch, gamma=0.97):
        o, a, r, p, d = batch
        with self.lock:
            q = self.net(o).gather(1, a[:, None]).squeeze(1)
            with torch.no_grad():
                y = r + gamma * self.target(p).max(1).values * (~d).float()
            loss = F.smooth_l1_loss(q, y)
            self.opt.zero_grad()
            loss.backward()
            for w in self.net.parameters():
                dist.all_reduce(w.grad, group=self.group)
                w.grad /= len(self.ranks)
            self.opt.step()
            self.updates += 1
            if self.updates % 50 == 0:
                self.target.load_state_dict(self.net.state_dict())
        return loss.item()

    def weights(self):
        return {k: v.clone() for k, v in self.net.state_dict().items()}

    def close(self, directory):
        with self.lock:
            torch.save(self.opt.state_dict(), os.path.join(directory, f"optim_{self.index}.pt"))
            dist.barrier(group=self.group)
            if self.index == 0:
                torch.save(self.net.state_dict(), os.path.join(directory, "policy.pt"))
        return self.updates


_group = None


def setup_group(ranks):
    global _group
    _group = dist.new_group(ranks)
