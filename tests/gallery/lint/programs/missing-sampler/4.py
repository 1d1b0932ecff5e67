import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def worker(rank, world):
    dist.init_process_group("nccl", rank=rank, world_size=world)
    torch.cuda.set_device(rank)
    model = FSDP(torch.nn.Linear(4, 4).to(rank))
    sampler = torch.utils.data.RandomSampler(range(100))
    loader = torch.utils.data.DataLoader(range(100), sampler=sampler, batch_size=4)
    for x in loader:
        model(x.float()).sum().backward()


if __name__ == "__main__":
    mp.spawn(worker, args=(4,), nprocs=4)
