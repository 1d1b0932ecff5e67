import torch
import torch.nn as nn
from torch.utils.data import Dataset


class Sentences(Dataset):
    """Synthetic tagging corpus, the label depends on the token and its left neighbour."""

    def __init__(self, n, length, vocab, labels, noisy=(12000, 12700)):
        self.n, self.length, self.vocab, self.labels = n, length, vocab, labels
        self.noisy = noisy

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        x = torch.randint(1, self.vocab, (self.length,), generator=g)
        left = torch.roll(x, 1)
        y = (x % 3) * 3 + left % 3
        if self.noisy[0] <= i < self.noisy[1]:
            y = torch.randint(0, self.labels, (self.length,), generator=g)
        return x, y


class Tagger(nn.Module):
    def __init__(self, vocab, labels, hidden):
        super().__init__()
        self.emb = nn.Embedding(vocab, hidden)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, labels)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])
