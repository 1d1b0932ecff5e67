import multiprocessing as mp
import random

import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

WORDS = 4


class YesNoDataset(Dataset):
    """Log-mel features of eight words each."""

    def __init__(self, split, num_utts, feature_dim=23):
        self.split, self.num_utts, self.feature_dim = split, num_utts, feature_dim

    def __len__(self):
        return self.num_utts

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i + (0 if self.split == "train" else 10 ** 6))
        n = 240 + int(torch.randint(0, 60, (1,), generator=g))
        target = torch.randint(1, WORDS, (8,), generator=g)
        feats = torch.randn(n, self.feature_dim, generator=g)
        feats += target.repeat_interleave(n // 8 + 1)[:n, None].float()
        return feats, target


def collate(samples):
    lens = torch.tensor([f.size(0) for f, _ in samples])
    feats = torch.nn.utils.rnn.pad_sequence([f for f, _ in samples], batch_first=True)
    return {"inputs": feats, "num_frames": lens, "targets": torch.stack([t for _, t in samples])}


class YesNoAsrDataModule:
    def __init__(self, args, rank, world):
        self.args, self.rank, self.world = args, rank, world

    def _loader(self, dataset, batch_size, shuffle):
        sampler = DistributedSampler(dataset, self.world, self.rank, shuffle=shuffle)
        return DataLoader(
            dataset,
            batch_size=batch_size,
            sampler=sampler,
            num_workers=self.args.num_workers,
            collate_fn=collate,
            multiprocessing_context=mp.get_context("spawn"),
        )

    def train_dataloaders(self):
        return self._loader(YesNoDataset("train", 240), self.args.batch_size, True)

    def test_dataloaders(self):
        return self._loader(YesNoDataset("test", 60), self.args.batch_size, False)
