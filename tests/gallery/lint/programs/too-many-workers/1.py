import os

import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def loader(ds):
    return DataLoader(ds, batch_size=8, sampler=DistributedSampler(ds), num_workers=os.cpu_count(), drop_last=True)


dist.init_process_group("gloo")
