import random

import torch
from torch.utils.data import IterableDataset


class UtteranceStream(IterableDataset):
    """Endless stream of (frames, label) with a long-tailed length, as in read-speech corpora."""

    def __init__(self, rank, feat=20, classes=12, seed=11):
        self.rank, self.feat, self.classes, self.seed = rank, feat, classes, seed

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        rng = random.Random(self.seed * 1000 + self.rank * 10 + (info.id if info else 0))
        g = torch.Generator().manual_seed(rng.randrange(2**31))
        while True:
            n = min(600, int(rng.lognormvariate(5.0, 0.7)) + 20)
            label = rng.randrange(self.classes)
            yield torch.randn(n, self.feat, generator=g) + 0.1 * label, label


def windows(loader, token_budget):
    """Groups utterances until the token budget is used up: one group is one optimizer step."""
    group, used = [], 0
    for frames, label in loader:
        group.append((frames, label))
        used += frames.shape[0]
        if used >= token_budget:
            yield group, used
            group, used = [], 0
