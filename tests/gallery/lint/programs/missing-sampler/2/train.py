import torch.distributed as dist
from data import train_loader
from torch.nn.parallel import DistributedDataParallel


def run(model):
    dist.init_process_group(backend="gloo")
    ddp = DistributedDataParallel(model)
    for batch in train_loader("data"):
        ddp(batch).backward()


if __name__ == "__main__":
    run(None)
