import threading

import torch
from torch import nn


def make_model():
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8))


class ParameterServer:
    def __init__(self, num_trainers, lr=0.05):
        torch.manual_seed(0)
        self.model = make_model()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=0.9)
        self.num_trainers = num_trainers
        self.cond = threading.Condition()
        self.version = 0
        self.pending = 0
        for p in self.model.parameters():
            p.grad = torch.zeros_like(p)

    def _state(self):
        return [p.detach().clone() for p in self.model.parameters()]

    @staticmethod
    def fetch(ps_rref):
        self = ps_rref.local_value()
        with self.cond:
            return self.version, self._state()

    @staticmethod
    def push(ps_rref, version, grads):
        self = ps_rref.local_value()
        with self.cond:
            for p, g in zip(self.model.parameters(), grads):
                p.grad += g / self.num_trainers
            self.pending += 1
            if self.pending == self.num_trainers:
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=False)
                self.pending = 0
                self.version += 1
                self.cond.notify_all()
            else:
                self.cond.wait_for(lambda: self.version > version)
            return self.version, self._state()

    @staticmethod
    def snapshot(ps_rref, version):
        self = ps_rref.local_value()
        with self.cond:
            self.cond.wait_for(lambda: self.version >= version)
            return self.version, self._state()
