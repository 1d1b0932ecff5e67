import torch
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __init__(self, xs):
        self.xs = xs

    def __len__(self):
        return len(self.xs)

    def __getitem__(self, i):
        return torch.tensor(self.xs[i]).cuda()


loader = DataLoader(Points([1.0, 2.0]), num_workers=2)
