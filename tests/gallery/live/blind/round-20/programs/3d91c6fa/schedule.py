"""One-forward-one-backward schedule."""
from collections import deque

import torch.nn.functional as F


class OneFOneB:
    def __init__(self, stage, comm):
        self.stage = stage
        self.comm = comm

    def _forward(self, x, micro):
        tokens, labels = micro
        inp = x if x is not None else tokens
        out = self.stage(inp)
        if self.comm.last:
            out = F.cross_entropy(out.flatten(0, 1), labels.flatten())
        return inp, out

    def _backward(self, inp, out, grad, scale):
        if grad is None:
            (out * scale).backward()
        else:
            out.backward(grad)
        return inp.grad if inp.is_floating_point() else None

    def step(self, micros):
        comm = self.comm
        n = len(micros)
        warmup = min(comm.size - comm.rank - 1, n)
        pending, losses = deque(), []
        it = iter(micros)

        for _ in range(warmup):
            inp, out = self._forward(comm.recv_forward(), next(it))
            comm.send_forward(out)
            pending.append((inp, out))

        remaining = n - warmup
        x = comm.recv_forward() if remaining else None
        for i in range(remaining):
            inp, out = self._forward(x, next(it))
            comm.send_forward(out)
            pending.append((inp, out))
            grad = comm.recv_backward()
            inp, out = pending.popleft()
            if comm.last:
                losses.append(out.item())
            dx = self._backward(inp, out, grad, 1.0 / n)
            comm.send_backward(dx)
            if i + 1 < remaining:
                x = comm.recv_forward()

        for _ in range(warmup):
            grad = comm.recv_backward()
            inp, out = pending.popleft()
            comm.send_backward(self._backward(inp, out, grad, 1.0 / n))
        return sum(losses) / len(losses) if losses else None
