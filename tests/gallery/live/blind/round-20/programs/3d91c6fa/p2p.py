"""Point-to-point transfers between neighbouring pipeline stages."""
import torch
import torch.distributed as dist


class StageComm:
    def __init__(self, shape):
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.shape = shape

    @property
    def first(self):
        return self.rank == 0

    @property
    def last(self):
        return self.rank == self.size - 1

    def recv_forward(self):
        if self.first:
            return None
        buf = torch.empty(self.shape)
        dist.recv(buf, src=self.rank - 1)
        return buf.requires_grad_(True)

    def send_forward(self, out):
        if not self.last:
            dist.send(out.detach().contiguous(), dst=self.rank + 1)

    def recv_backward(self):
        if self.last:
            return None
        buf = torch.empty(self.shape)
        dist.recv(buf, src=self.rank + 1)
        return buf

    def send_backward(self, grad):
        if not self.first:
            dist.send(grad.contiguous(), dst=self.rank - 1)
