import os

import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel


class T:
    def __init__(self, net):
        self.net = FullyShardedDataParallel(net, device_id=int(os.environ["LOCAL_RANK"]))
        self.local_rank = int(os.environ["LOCAL_RANK"])

    def step(self, loss, opt):
        loss.backward()
        if self.local_rank == 0:
            norm = self.net.clip_grad_norm_(1.0)
            print("norm", norm)
        opt.step()


dist.init_process_group("nccl")
