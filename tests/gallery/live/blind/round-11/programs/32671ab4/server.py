import threading
import time

import torch

from net import RankNet

SERVER = None


class ParameterServer:
    def __init__(self, num_trainers, warmup_pushes, lr):
        self.num_trainers, self.warmup_pushes = num_trainers, warmup_pushes
        self.model = RankNet()
        self.opt = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=0.9)
        self.cv = threading.Condition()
        self.pushes, self.round, self.pending = 0, 0, []
        self.t0 = time.time()

    def state(self):
        return [p.detach().clone() for p in self.model.parameters()]

    def apply(self, grads):
        for p, g in zip(self.model.parameters(), grads):
            p.grad = g
        self.opt.step()
        self.pushes += 1
        if self.pushes % 50 == 0:
            phase = "async" if self.pushes <= self.warmup_pushes else "sync"
            print(f"[ps] {self.pushes} updates ({phase}) {time.time() - self.t0:.1f}s", flush=True)

    def push(self, trainer, grads):
        with self.cv:
            if self.pushes < self.warmup_pushes:
                self.apply(grads)
                return self.state()
            self.pending.append(grads)
            if len(self.pending) == self.num_trainers:
                self.apply([torch.stack(g).mean(0) for g in zip(*self.pending)])
                self.pending.clear()
                self.round += 1
                self.cv.notify_all()
            else:
                mine = self.round
                self.cv.wait_for(lambda: self.round > mine)
            return self.state()


def start(num_trainers, warmup_pushes, lr):
    global SERVER
    SERVER = ParameterServer(num_trainers, warmup_pushes, lr)


def push(trainer, grads):
    return SERVER.push(trainer, grads)


def pull():
    return SERVER.state()
