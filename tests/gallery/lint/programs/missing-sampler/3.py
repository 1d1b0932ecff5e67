import torch
from torch import nn
from torch.distributed import init_process_group
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, net):
        init_process_group("gloo")
        self.net = nn.parallel.DistributedDataParallel(net)
        self.opts = dict(batch_size=16, shuffle=True)

    def loader(self):
        train = TensorDataset(torch.rand(100, 3), torch.rand(100))
        return DataLoader(train, **self.opts)

    def fit(self):
        for x, y in self.loader():
            (self.net(x) - y).pow(2).mean().backward()


if __name__ == "__main__":
    Trainer(nn.Linear(3, 1)).fit()
