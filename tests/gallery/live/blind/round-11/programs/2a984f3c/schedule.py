import torch
import torch.distributed as dist
import torch.nn.functional as F


class GPipe:
    def __init__(self, stage, rank, world, cfg):
        self.stage, self.rank, self.world, self.cfg = stage, rank, world, cfg
        self.first, self.last = rank == 0, rank == world - 1

    def recv_activation(self):
        size = torch.zeros(1, dtype=torch.long)
        dist.recv(size, self.rank - 1)
        x = torch.empty(int(size), self.cfg.dim)
        dist.recv(x, self.rank - 1)
        return x.requires_grad_()

    def send_activation(self, y):
        dist.send(torch.tensor([y.size(0)]), self.rank + 1)
        dist.send(y.detach(), self.rank + 1)

    def step(self, x=None, y=None):
        micro_x = x.split(self.cfg.micro_batch) if x is not None else None
        micro_y = y.split(self.cfg.micro_batch) if y is not None else None
        n = len(micro_x) if self.first else self.cfg.batch_size // self.cfg.micro_batch
        inputs, outputs, losses = [], [], []
        for m in range(n):
            inp = micro_x[m] if self.first else self.recv_activation()
            out = self.stage(inp)
            if self.last:
                out = F.cross_entropy(out, micro_y[m]) / n
                losses.append(out.detach())
            else:
                self.send_activation(out)
            inputs.append(inp)
            outputs.append(out)
        for inp, out in zip(inputs, outputs):
            if self.last:
                out.backward()
            else:
                grad = torch.empty_like(out)
                dist.recv(grad, self.rank + 1)
                out.backward(grad)
            if not self.first:
                dist.send(inp.grad, self.rank - 1)
        return sum(losses).item() if losses else None
