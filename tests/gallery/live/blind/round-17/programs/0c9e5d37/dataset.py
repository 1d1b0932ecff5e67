import torch
from torch.utils.data import Dataset


class CrackDataset(Dataset):
    """Close-ups of concrete with cracks, a few dozen images."""

    CLASSES = ("crack", "spall", "stain")

    def __init__(self, n=96, size=64, train=True):
        self.n, self.size, self.train = n, size, train

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        img = torch.rand(3, self.size, self.size, generator=g)
        label = int(torch.randint(0, 3, (1,), generator=g))
        x0, y0 = torch.randint(0, self.size - 17, (2,), generator=g).tolist()
        img[label, y0:y0 + 16, x0:x0 + 16] += 1.0
        box = torch.tensor([x0, y0, x0 + 16, y0 + 16]) / self.size
        if self.train and torch.rand(()) < 0.5:
            img = img.flip(-1)
            box = torch.stack([1 - box[2], box[1], 1 - box[0], box[3]])
        return img, label, box
