import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class ArtifactDataset(Dataset):
    def __init__(self, api, n, shards=16, dim=64):
        self.api = api
        self.n, self.shards, self.dim = n, shards, dim
        self.centers = torch.randn(10, dim, generator=torch.Generator().manual_seed(3))
        self._shard = None
        self._entry = None

    def __len__(self):
        return self.n

    def _open(self, shard):
        if shard != self._shard:
            self._entry = self.api.open_entry(f"shard-{shard:03d}.bin")
            self._shard = shard

    def __getitem__(self, i):
        self._open(i % self.shards)
        g = torch.Generator().manual_seed(i)
        y = int(torch.randint(0, 10, (), generator=g))
        return self.centers[y] + torch.randn(self.dim, generator=g), y


def loader(api, n, batch, rank, world, train):
    ds = ArtifactDataset(api, n)
    sampler = DistributedSampler(ds, world, rank, shuffle=train)
    return DataLoader(ds, batch_size=batch, sampler=sampler, num_workers=1, drop_last=train), sampler
