import contextlib

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def go(net, loader):
    dist.init_process_group("gloo")
    net = DDP(net)
    for x in loader:
        with contextlib.suppress(Exception):
            net(x).backward()
