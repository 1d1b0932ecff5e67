from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def get_loader(ds):
    return DataLoader(ds, batch_size=2, sampler=DistributedSampler(ds))
