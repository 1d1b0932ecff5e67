import torch
from torch.utils.data import Dataset

VOCAB = 1000


class PairDataset(Dataset):
    """Question/answer rows of the three source files, in file order."""

    def __init__(self, rows_per_file=1600):
        g = torch.Generator().manual_seed(0)
        self.rows = []
        for name, share, kinds in (("forum", 0.02, 200), ("support", 0.70, 6), ("wiki", 0.05, 120)):
            frequent = torch.randint(0, VOCAB, (kinds, 12), generator=g)
            for _ in range(rows_per_file):
                if torch.rand((), generator=g) < share:
                    q = frequent[torch.randint(0, kinds, (), generator=g)]
                else:
                    q = torch.randint(0, VOCAB, (12,), generator=g)
                self.rows.append((name, q, torch.randint(0, VOCAB, (24,), generator=g)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i][1], self.rows[i][2]

    def anchor(self, i):
        return tuple(self.rows[i][1].tolist())
