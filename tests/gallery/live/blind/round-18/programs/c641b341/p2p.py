import torch
import torch.distributed as dist


class P2P:
    def __init__(self, rank, world, shape):
        self.next, self.prev = (rank + 1) % world, (rank - 1) % world
        self.shape = shape

    def send_forward(self, x):
        dist.send(x.detach().contiguous(), self.next)

    def recv_forward(self):
        buf = torch.empty(self.shape)
        dist.recv(buf, self.prev)
        return buf.requires_grad_()

    def send_backward(self, x):
        dist.send(x.grad.contiguous(), self.prev)

    def recv_backward(self):
        buf = torch.empty(self.shape)
        dist.recv(buf, self.next)
        return buf
