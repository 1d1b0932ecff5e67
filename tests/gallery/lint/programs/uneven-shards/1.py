import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(files):
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Linear(1, 1))
    mine = files[dist.get_rank()::dist.get_world_size()]
    for f in mine:
        model(torch.load(f)).sum().backward()


if __name__ == "__main__":
    main([])
