import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import IterableDataset


class Every(IterableDataset):
    def __init__(self, lines):
        self.lines = lines

    def __iter__(self):
        rank = dist.get_rank()
        world = dist.get_world_size()
        for i, line in enumerate(self.lines):
            if i % world == rank:
                yield line


dist.init_process_group("gloo")
model = DDP(None)
