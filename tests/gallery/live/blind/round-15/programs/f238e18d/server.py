import threading

import torch
import torch.distributed.rpc as rpc
import torch.nn as nn


def build_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv1d(4, 48, 5, padding=2), nn.ReLU(), nn.Conv1d(48, 48, 5, padding=2), nn.ReLU(),
                         nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(192, 6))


class BatchUpdateServer:
    """Collects one gradient from every trainer, then answers all of them with the new weights."""

    def __init__(self, trainers):
        self.model, self.trainers = build_model(), trainers
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.02, momentum=0.9)
        for p in self.model.parameters():
            p.grad = torch.zeros_like(p)
        self.lock, self.arrived, self.updates = threading.Lock(), 0, 0
        self.future = torch.futures.Future()

    def weights(self):
        return [p.detach().clone() for p in self.model.parameters()]

    @staticmethod
    def fetch(rref):
        return rref.local_value().weights()

    @staticmethod
    @rpc.functions.async_execution
    def update_and_fetch(rref, grads):
        self = rref.local_value()
        with self.lock:
            for p, g in zip(self.model.parameters(), grads):
                p.grad += g
            self.arrived += 1
            answer = self.future
            if self.arrived == self.trainers:
                for p in self.model.parameters():
                    p.grad /= self.trainers
                self.opt.step()
                self.opt.zero_grad(set_to_none=False)
                self.arrived, self.updates = 0, self.updates + 1
                self.future = torch.futures.Future()
                answer.set_result(self.weights())
        return answer
