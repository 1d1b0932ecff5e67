import torch
import torch.distributed as dist


class Neighbours:
    def __init__(self, shape):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.shape = shape

    @property
    def first(self):
        return self.rank == 0

    @property
    def last(self):
        return self.rank == self.world - 1

    def recv_forward(self):
        if self.first:
            return None
        x = torch.empty(self.shape)
        dist.recv(x, src=self.rank - 1)
        return x.requires_grad_()

    def send_forward(self, y):
        if not self.last:
            dist.send(y.detach().contiguous(), dst=self.rank + 1)

    def recv_backward(self):
        if self.last:
            return None
        g = torch.empty(self.shape)
        dist.recv(g, src=self.rank + 1)
        return g

    def send_backward(self, g):
        if not self.first:
            dist.send(g.contiguous(), dst=self.rank - 1)
