import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Worker:
    def __init__(self, net):
        dist.init_process_group("nccl")
        self.net = DistributedDataParallel(net)

    def epoch(self, loader):
        for x in loader:
            try:
                self.net(x).sum().backward()
            except (torch.cuda.OutOfMemoryError, ValueError):
                self.net.zero_grad()
