from collections import deque

import torch.nn.functional as F


class OneFOneB:
    def __init__(self, stage, comm):
        self.stage, self.comm = stage, comm

    def _forward(self, tokens, targets, n):
        x = tokens if self.comm.first else self.comm.recv_forward()
        y = self.stage(x)
        if self.comm.last:
            y = F.cross_entropy(y.flatten(0, 1), targets.flatten()) / n
        return x, y

    def _backward(self, x, y, grad):
        y.backward(grad)
        return None if self.comm.first else x.grad

    def step(self, micro_batches):
        n = len(micro_batches)
        warmup = min(self.comm.world - self.comm.rank - 1, n)
        pending, loss = deque(), 0.0

        for i in range(warmup):
            x, y = self._forward(*micro_batches[i], n)
            self.comm.send_forward(y)
            pending.append((x, y))

        for i in range(warmup, n):
            x, y = self._forward(*micro_batches[i], n)
            if self.comm.last:
                loss += y.item()
            else:
                self.comm.send_forward(y)
            pending.append((x, y))
            x, y = pending.popleft()
            self.comm.send_backward(self._backward(x, y, self.comm.recv_backward()))

        while pending:
            x, y = pending.popleft()
            self.comm.send_backward(self._backward(x, y, self.comm.recv_backward()))
        return loss
