import threading

import torch
import torch.distributed.rpc as rpc
import torch.nn as nn

_server = None


def build_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 1))


class SyncParameterServer:
    def __init__(self, trainers, lr=0.05):
        self.model = build_model()
        self.opt = torch.optim.SGD(self.model.parameters(), lr=lr)
        self.trainers = trainers
        self.lock = threading.Lock()
        self.received = 0
        self.version = 0
        self.next_version = torch.futures.Future()
        for p in self.model.parameters():
            p.grad = torch.zeros_like(p)

    def weights(self):
        return [p.detach().clone() for p in self.model.parameters()]

    def accumulate(self, grads):
        with self.lock:
            for p, g in zip(self.model.parameters(), grads):
                p.grad += g / self.trainers
            self.received += 1
            reply = self.next_version
            if self.received == self.trainers:
                self.opt.step()
                self.opt.zero_grad(set_to_none=False)
                self.received = 0
                self.version += 1
                self.next_version = torch.futures.Future()
                reply.set_result((self.version, self.weights()))
        return reply


def start_server(trainers):
    global _server
    _server = SyncParameterServer(trainers)


def current_weights():
    return _server.weights()


@rpc.functions.async_execution
def push_and_pull(grads):
    return _server.accumulate(grads)
