import torch
from torch.utils.data import Dataset


class Harbor(Dataset):
    """Small scenes with ships. One scene in a few is open water."""

    def __init__(self, n=8000, size=48, empty=0.08, seed=3):
        self.n, self.size, self.empty, self.seed = n, size, empty, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 1_000_003 + i)
        image = 0.1 * torch.randn(3, self.size, self.size, generator=g)
        boxes = []
        if torch.rand(1, generator=g).item() >= self.empty:
            for _ in range(int(torch.randint(1, 4, (1,), generator=g))):
                w, h = torch.randint(8, 20, (2,), generator=g).tolist()
                x = int(torch.randint(0, self.size - w, (1,), generator=g))
                y = int(torch.randint(0, self.size - h, (1,), generator=g))
                image[:, y : y + h, x : x + w] += 1.0
                boxes.append([x, y, x + w, y + h])
        return image, torch.tensor(boxes, dtype=torch.float).reshape(-1, 4)


def collate(rows):
    return torch.stack([r[0] for r in rows]), [r[1] for r in rows]
