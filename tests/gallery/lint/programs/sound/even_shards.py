import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def mine(files):
    world = dist.get_world_size()
    files = files[: len(files) // world * world]
    return files[dist.get_rank() :: world]


def main(net, files):
    dist.init_process_group("gloo")
    net = DDP(net)
    for f in mine(files):
        net(f).backward()


if __name__ == "__main__":
    main(None, [])
