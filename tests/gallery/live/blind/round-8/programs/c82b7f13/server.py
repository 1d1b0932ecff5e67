import threading

import torch
import torch.nn as nn


def build():
    return nn.Sequential(nn.Linear(40, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))


class ParameterServer:
    """Hogwild updates for the first pushes, averaged rounds afterwards."""

    def __init__(self, trainers, async_pushes, lr):
        torch.manual_seed(0)
        self.model = build()
        self.opt = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=0.9)
        self.trainers = trainers
        self.async_pushes = async_pushes
        self.cond = threading.Condition()
        self.version = 0
        self.sums = None
        self.arrived = 0

    def state(self):
        return self.version, [p.detach().clone() for p in self.model.parameters()]

    def _apply(self, grads):
        for p, g in zip(self.model.parameters(), grads):
            p.grad = g
        self.opt.step()
        self.version += 1

    def pull(self):
        with self.cond:
            return self.state()

    def push(self, trainer, grads):
        with self.cond:
            if self.version < self.async_pushes:
                self._apply(grads)
                return self.state()
            return self._averaged(grads)

    def _averaged(self, grads):
        if self.sums is None:
            self.sums = [torch.zeros_like(g) for g in grads]
        for s, g in zip(self.sums, grads):
            s += g
        self.arrived += 1
        current = self.version
        if self.arrived == self.trainers:
            self._apply([s / self.trainers for s in self.sums])
            self.sums, self.arrived = None, 0
            self.cond.notify_all()
        else:
            self.cond.wait_for(lambda: self.version > current)
        return self.state()


_server = None


def start_server(*args):
    global _server
    _server = ParameterServer(*args)


def push(trainer, grads):
    return _server.push(trainer, grads)


def pull():
    return _server.pull()
