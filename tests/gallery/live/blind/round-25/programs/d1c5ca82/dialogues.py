import torch
from torch.utils.data import Dataset


class Dialogues(Dataset):
    def __init__(self, n, seed, length=20, target=8, vocab=96):
        g = torch.Generator().manual_seed(seed)
        self.src = torch.randint(4, vocab, (n, length), generator=g)
        self.tgt = torch.cat([self.src[:, : target - 1], torch.full((n, 1), 1)], 1)

    def __len__(self):
        return len(self.src)

    def __getitem__(self, i):
        return {"input_ids": self.src[i], "attention_mask": torch.ones_like(self.src[i]), "labels": self.tgt[i]}
