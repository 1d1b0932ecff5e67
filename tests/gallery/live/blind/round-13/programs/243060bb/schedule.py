import torch
import torch.distributed as dist


class Link:
    """Point-to-point transfers to the neighbouring stages; sends overlap with compute."""

    def __init__(self, rank, world, shape):
        self.prev = rank - 1 if rank > 0 else None
        self.next = rank + 1 if rank < world - 1 else None
        self.shape = shape
        self.pending = []

    def recv_forward(self):
        if self.prev is None:
            return None
        x = torch.empty(self.shape)
        dist.recv(x, self.prev)
        return x.requires_grad_(True)

    def send_forward(self, y):
        if self.next is not None:
            self._send(y.detach().contiguous(), self.next)

    def recv_backward(self):
        if self.next is None:
            return None
        g = torch.empty(self.shape)
        dist.recv(g, self.next)
        return g

    def send_backward(self, x):
        if self.prev is not None:
            self._send(x.grad.contiguous(), self.prev)

    def _send(self, t, dst):
        self.pending.append((dist.isend(t, dst), t))

    def flush(self):
        for work, _ in self.pending:
            work.wait()
        self.pending.clear()


def run_1f1b(stage, link, num_stages, num_micro, inputs=None, targets=None, loss_fn=None):
    """One forward-backward pass over `num_micro` micro-batches; returns the summed loss on the last stage."""
    warmup = min(num_stages - stage.index - 1, num_micro)
    held, losses, fed = [], [], 0

    def forward():
        nonlocal fed
        x = link.recv_forward()
        y = stage(inputs[fed] if x is None else x)
        if link.next is None:
            y = loss_fn(y, targets[fed]) / num_micro
            losses.append(y.detach())
        fed += 1
        held.append((x, y))
        return y

    def backward(grad):
        x, y = held.pop(0)
        y.backward(grad)
        if x is not None:
            link.send_backward(x)

    for _ in range(warmup):
        link.send_forward(forward())
    for _ in range(num_micro - warmup):
        link.send_forward(forward())
        backward(link.recv_backward())
    for _ in range(warmup):
        backward(link.recv_backward())
    link.flush()
    return sum(losses) if losses else None
