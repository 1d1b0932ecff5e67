import torch
from torch.utils.data import Dataset

from .misc import tie_to_parent


class RoadScenes(Dataset):
    def __init__(self, n, transform=None, size=48):
        self.n, self.transform, self.size = n, transform, size
        g = torch.Generator().manual_seed(3)
        self.labels = torch.randint(0, 6, (n,), generator=g)
        self.horizon = torch.randint(8, size - 8, (n,), generator=g)
        self.horizon[::611] = size - 1

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        img = torch.rand(3, self.size, self.size, generator=g)
        img[:, : int(self.horizon[i])] *= 0.4 + 0.1 * self.labels[i]
        if self.transform is not None:
            img = self.transform(img, int(self.horizon[i]))
        return {"pixel_values": img, "labels": self.labels[i]}


def worker_init(trainer):
    make = trainer.get_train_dataloader

    def wrapped():
        dl = make()
        base = getattr(dl, "base_dataloader", dl)
        prev = base.worker_init_fn

        def init(wid):
            tie_to_parent()
            if prev is not None:
                prev(wid)

        base.worker_init_fn = init
        return dl

    trainer.get_train_dataloader = wrapped
