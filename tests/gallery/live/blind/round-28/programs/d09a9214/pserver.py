import threading

import torch
import torch.distributed.rpc as rpc

from model import build_model


class SyncParameterServer:
    """Averages one gradient from every trainer, then hands out the new weights."""

    def __init__(self, num_trainers, lr):
        self.model = build_model()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=0.9)
        self.num_trainers = num_trainers
        self.lock = threading.Lock()
        self.received = 0
        self.version = 0
        self.next_model = torch.futures.Future()
        for p in self.model.parameters():
            p.grad = torch.zeros_like(p)

    def get_model(self):
        return self.model

    @staticmethod
    @rpc.functions.async_execution
    def push_and_pull(ps_rref, grads):
        self = ps_rref.local_value()
        with self.lock:
            for p, g in zip(self.model.parameters(), grads):
                p.grad += g / self.num_trainers
            self.received += 1
            fut = self.next_model
            if self.received == self.num_trainers:
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=False)
                self.received = 0
                self.version += 1
                self.next_model = torch.futures.Future()
                fut.set_result((self.version, [p.detach().clone() for p in self.model.parameters()]))
        return fut
