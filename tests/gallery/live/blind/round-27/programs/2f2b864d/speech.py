import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset


class Utterances(Dataset):
    def __init__(self, count=210, dim=20):
        g = torch.Generator().manual_seed(7)
        self.lengths = (torch.randint(20, 400, (count,), generator=g)).tolist()
        self.dim = dim

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(1000 + i)
        n = self.lengths[i]
        return torch.randn(n, self.dim, generator=g), torch.randint(0, 50, (n,), generator=g)


def collate(items):
    feats, units = zip(*items)
    return pad_sequence(feats, batch_first=True), pad_sequence(units, batch_first=True, padding_value=-100)


class UnitPredictor(nn.Module):
    def __init__(self, dim=20, hidden=48, units=50):
        super().__init__()
        self.proj = nn.Linear(dim, hidden)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, units)

    def forward(self, x):
        h, _ = self.rnn(torch.relu(self.proj(x)))
        return self.out(h)
