import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def main(train, val, net):
    dist.init_process_group("gloo")
    net = DDP(net)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, sampler=sampler, shuffle=False)
    val_loader = DataLoader(val, batch_size=4)
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for x in loader:
            net(x).backward()
    return [net.module(x) for x in val_loader]


if __name__ == "__main__":
    main([], [], None)
