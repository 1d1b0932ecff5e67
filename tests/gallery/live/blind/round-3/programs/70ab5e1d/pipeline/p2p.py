import torch
import torch.distributed as dist


class P2P:
    """Blocking stage-to-stage transfers; the last stage feeds the first one of the next virtual chunk."""

    def __init__(self, shape):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.next = (self.rank + 1) % self.world
        self.prev = (self.rank - 1) % self.world
        self.shape = shape

    def send_forward(self, t):
        dist.send(t.contiguous(), self.next)

    def recv_forward(self):
        t = torch.empty(self.shape)
        dist.recv(t, self.prev)
        return t

    def send_forward_recv_forward(self, t):
        self.send_forward(t)
        return self.recv_forward()
