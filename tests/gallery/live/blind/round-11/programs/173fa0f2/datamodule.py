import lightning as L
import torch
from torch.utils.data import DataLoader, Dataset

WORDS = "a the dog cat runs sits jumps over under near red blue small big tree house river road".split()


class Captions(Dataset):
    def __init__(self, n, seed, length=8, dim=32):
        g = torch.Generator().manual_seed(seed)
        self.words = torch.randint(0, len(WORDS), (n, length), generator=g)
        table = torch.randn(len(WORDS), dim, generator=torch.Generator().manual_seed(0))
        self.feats = table[self.words] + 0.5 * torch.randn(n, length, dim, generator=g)

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        return {"feats": self.feats[i], "words": self.words[i]}


class Shard(Dataset):
    def __init__(self, base, rank, world):
        self.base = base
        self.index = list(range(rank, len(base), world))

    def __len__(self):
        return len(self.index)

    def __getitem__(self, i):
        return self.base[self.index[i]]


class CaptionData(L.LightningDataModule):
    def __init__(self, batch_size=24):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage):
        self.train = Captions(2880, 1)
        self.val = Captions(302, 2)

    def _loader(self, ds, **kw):
        return DataLoader(Shard(ds, self.trainer.global_rank, self.trainer.world_size), self.batch_size, **kw)

    def train_dataloader(self):
        return self._loader(self.train, shuffle=True)

    def val_dataloader(self):
        return self._loader(self.val)
