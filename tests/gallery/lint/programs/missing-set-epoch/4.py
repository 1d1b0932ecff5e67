import torch.distributed as dist
from torch.utils import data


def train(dataset, epochs=20):
    kwargs = {"shuffle": True, "drop_last": True}
    sampler = data.distributed.DistributedSampler(dataset, **kwargs)
    loader = data.DataLoader(dataset, sampler=sampler)
    for ep in range(epochs):
        total = 0
        for i, batch in enumerate(loader):
            total += batch.sum()
        print(ep, total)


if __name__ == "__main__":
    dist.init_process_group("nccl")
    train([])
