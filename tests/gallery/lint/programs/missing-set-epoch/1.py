import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def main(ds, model, opt):
    dist.init_process_group("gloo")
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, batch_size=8, sampler=sampler)
    for epoch in range(10):
        for x in loader:
            model(x).backward()
            opt.step()


if __name__ == "__main__":
    main([], None, None)
