import torch
import torch.distributed as dist


@torch.no_grad()
def average_weights(net, weight):
    total = torch.tensor([float(weight)])
    dist.all_reduce(total)
    for p in net.parameters():
        p.mul_(weight / total.item())
        dist.all_reduce(p)


class RoundLog:
    def __init__(self):
        self.rows = []

    def add(self, **kw):
        rows = [None] * dist.get_world_size()
        dist.all_gather_object(rows, kw)
        self.rows.append(rows)
        return rows
