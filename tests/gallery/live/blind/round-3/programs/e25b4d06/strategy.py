import os

import torch
import torch.distributed as dist


class DDPStrategy:
    def __init__(self):
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        self.global_rank = dist.get_rank()
        self.world_size = dist.get_world_size()

    @property
    def is_global_zero(self):
        return self.global_rank == 0

    def barrier(self, name=None):
        dist.barrier()

    def reduce_mean(self, value):
        t = torch.tensor([float(value)])
        dist.all_reduce(t)
        return t.item() / self.world_size

    def write(self, obj, path):
        if self.is_global_zero:
            tmp = path + ".tmp"
            torch.save(obj, tmp)
            os.replace(tmp, path)
