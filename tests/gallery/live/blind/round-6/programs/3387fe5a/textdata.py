import torch
from torch.utils.data import Dataset


class Arithmetic(Dataset):
    """Little sums as character sequences."""

    CHARS = "0123456789+= "

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.a = torch.randint(0, 100, (n, 2), generator=g).tolist()

    def __len__(self):
        return len(self.a)

    def __getitem__(self, i):
        a, b = self.a[i]
        ids = torch.tensor([self.CHARS.index(c) for c in f"{a}+{b}={a + b}".ljust(12)])
        return {"input_ids": ids, "labels": ids}
