import threading

import torch
import torch.distributed.rpc as rpc
import torch.nn as nn
from torch.futures import Future


def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv1d(4, 32, 5, padding=2), nn.ReLU(), nn.Conv1d(32, 32, 5, padding=2), nn.ReLU(),
                         nn.AdaptiveAvgPool1d(8), nn.Flatten(), nn.Linear(256, 5))


class ParameterServer:
    """Takes one gradient from each trainer, steps, and answers all of them with the new weights."""

    def __init__(self, trainers):
        self.model = build()
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.03, momentum=0.9)
        self.trainers = trainers
        self.lock = threading.Lock()
        self.future, self.got, self.version = Future(), 0, 0

    def weights(self):
        return [p.detach().clone() for p in self.model.parameters()]

    @staticmethod
    def fetch(rref):
        return rref.local_value().weights()

    @staticmethod
    @rpc.functions.async_execution
    def push(rref, grads):
        self = rref.local_value()
        with self.lock:
            for p, g in zip(self.model.parameters(), grads):
                p.grad = g / self.trainers if p.grad is None else p.grad + g / self.trainers
            self.got += 1
            future = self.future
            if self.got == self.trainers:
                self.opt.step()
                self.opt.zero_grad(set_to_none=True)
                self.version += 1
                self.got, self.future = 0, Future()
                future.set_result(self.weights())
        return future
