import os

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import IterableDataset

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


class Stream(IterableDataset):
    def __init__(self, paths):
        self.paths = paths[rank::world]

    def __iter__(self):
        for p in self.paths:
            yield from open(p)


dist.init_process_group("gloo")
net = DistributedDataParallel(None)
