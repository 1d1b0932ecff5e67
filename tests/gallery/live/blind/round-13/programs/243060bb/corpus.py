import torch


class Corpus:
    """Deterministic token windows, read in order; every stage can open it."""

    def __init__(self, windows=1000, length=33, vocab=200, seed=1):
        g = torch.Generator().manual_seed(seed)
        start = torch.randint(0, vocab, (windows, 1), generator=g)
        stride = torch.randint(1, 5, (windows, 1), generator=g)
        self.data = (start + stride * torch.arange(length)) % vocab

    def batches(self, size):
        for i in range(0, len(self.data), size):
            chunk = self.data[i:i + size]
            yield chunk[:, :-1], chunk[:, 1:]

    def __len__(self):
        return len(self.data)
