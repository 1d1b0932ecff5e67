import torch.distributed as dist
from prep import tokenize_all


class Job:
    def __init__(self):
        dist.init_process_group("nccl")
        self.rank = dist.get_rank()

    def prepare(self):
        if self.rank == 0:
            tokenize_all("corpus")
        dist.barrier()
