from torch.utils.data.distributed import DistributedSampler as DS
import torch.utils.data as data
import torch.distributed as dist


class Loop:
    def __init__(self, ds):
        self.sampler = DS(ds, shuffle=True)
        self.loader = data.DataLoader(ds, sampler=self.sampler)

    def fit(self, epochs):
        for e in range(epochs):
            self.one()

    def one(self):
        for b in self.loader:
            b.sum().backward()


dist.init_process_group("gloo")
Loop([1]).fit(3)
