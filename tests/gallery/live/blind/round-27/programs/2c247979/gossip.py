import threading
from collections import deque

import torch
import torch.distributed as dist


class RingGossiper:
    """Push-sum style averaging with the next peer; messages may lag by `max_lag` rounds."""

    def __init__(self, params, group, max_lag=3):
        self.params = list(params)
        self.group = group
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()
        self.max_lag = max_lag
        self.outbox = deque()
        self.inbox = deque()
        self.size = sum(p.numel() for p in self.params)

    def _flatten(self):
        return torch.cat([p.detach().reshape(-1) for p in self.params])

    def _blend(self, other, weight):
        offset = 0
        with torch.no_grad():
            for p in self.params:
                chunk = other[offset:offset + p.numel()].view_as(p)
                p.mul_(1 - weight).add_(chunk, alpha=weight)
                offset += p.numel()

    def exchange(self):
        out = self._flatten()
        buf = torch.empty(self.size)
        self.outbox.append((dist.isend(out, (self.rank + 1) % self.world, group=self.group), out))
        self.inbox.append((dist.irecv(buf, (self.rank - 1) % self.world, group=self.group), buf))
        while len(self.inbox) > self.max_lag:
            work, received = self.inbox.popleft()
            work.wait()
            self._blend(received, 0.3)
        while len(self.outbox) > 2 * self.max_lag:
            self.outbox.popleft()[0].wait()


class ControlListener(threading.Thread):
    """Waits for orders from the coordinator (learning-rate changes, stop)."""

    def __init__(self, group, coordinator=0):
        super().__init__(name="control", daemon=True)
        self.group = group
        self.coordinator = coordinator
        self.stop_requested = threading.Event()
        self.lr_scale = 1.0

    def run(self):
        order = torch.zeros(2)
        while True:
            dist.recv(order, src=self.coordinator, group=self.group)
            if order[0].item() == 1:
                self.lr_scale = order[1].item()
            else:
                self.stop_requested.set()
                return
