import torch
from torch.utils.data import Dataset


class FilterbankDataset(Dataset):
    """Synthetic log-mel features with frame labels."""

    def __init__(self, n, frames=48, feat_dim=20, vocab=32):
        g = torch.Generator().manual_seed(7)
        self.proj = torch.randn(feat_dim, vocab, generator=g)
        self.n, self.frames, self.feat_dim = n, frames, feat_dim

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        feats = torch.randn(self.frames, self.feat_dim, generator=g)
        return feats, (feats @ self.proj).argmax(-1)
