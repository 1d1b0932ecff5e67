import threading

import torch
import torch.distributed.rpc as rpc

from model import build_model


class ParameterServer:
    """Holds the weights. Gradients of all trainers are summed up, then one
    step is taken and everyone gets the new weights."""

    def __init__(self, n_trainers, lr):
        self.model = build_model()
        self.opt = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=0.9)
        self.n_trainers = n_trainers
        self.lock = threading.Lock()
        self.pending = 0
        self.version = 0
        self.future = torch.futures.Future()
        for p in self.model.parameters():
            p.grad = torch.zeros_like(p)

    def weights(self):
        return [p.detach().clone() for p in self.model.parameters()]

    @staticmethod
    @rpc.functions.async_execution
    def push_pull(ps_rref, trainer, grads):
        self = ps_rref.local_value()
        with self.lock:
            for p, g in zip(self.model.parameters(), grads):
                p.grad += g
            self.pending += 1
            fut = self.future
            if self.pending >= self.n_trainers:
                for p in self.model.parameters():
                    p.grad /= self.n_trainers
                self.opt.step()
                self.opt.zero_grad(set_to_none=False)
                self.pending = 0
                self.version += 1
                fut.set_result(self.weights())
                self.future = torch.futures.Future()
        return fut
