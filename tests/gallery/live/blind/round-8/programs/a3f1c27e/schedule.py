"""One-forward-one-backward schedule over a line of stages."""
import torch
import torch.distributed as dist


class OneFOneB:
    def __init__(self, stage, shape):
        self.stage = stage
        self.shape = shape
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.pending = []

    def recv_forward(self):
        if self.rank == 0:
            return None
        buf = torch.empty(self.shape)
        dist.recv(buf, src=self.rank - 1)
        return buf.requires_grad_()

    def send_forward(self, out):
        if self.rank < self.size - 1:
            dist.send(out.detach().contiguous(), dst=self.rank + 1)

    def recv_backward(self):
        if self.rank == self.size - 1:
            return None
        buf = torch.empty(self.shape)
        dist.recv(buf, src=self.rank + 1)
        return buf

    def send_backward(self, grad):
        if self.rank > 0:
            dist.send(grad.contiguous(), dst=self.rank - 1)

    def forward(self, micro):
        tokens, labels = micro
        inp = self.recv_forward()
        out = self.stage(tokens if inp is None else inp, labels)
        self.pending.append((inp, out))
        return out

    def backward(self, scale):
        inp, out = self.pending.pop(0)
        grad = self.recv_backward()
        if grad is None:
            (out * scale).backward()
        else:
            out.backward(grad)
        return None if inp is None else inp.grad

    def run(self, micros):
        n = len(micros)
        scale = 1.0 / n
        warmup = min(self.size - self.rank - 1, n)
        losses = []
        for i in range(warmup):
            self.send_forward(self.forward(micros[i]))
        for i in range(n - warmup):
            out = self.forward(micros[warmup + i])
            if self.rank == self.size - 1:
                losses.append(out.item())
            else:
                self.send_forward(out)
            grad = self.backward(scale)
            self.send_backward(grad)
        for _ in range(warmup):
            grad = self.backward(scale)
            self.send_backward(grad)
        return sum(losses) / len(losses) if losses else None
