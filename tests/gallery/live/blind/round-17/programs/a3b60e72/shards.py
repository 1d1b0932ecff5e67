import torch

DOCS = {1: 5760, 2: 5760, 3: 5376}


class DocShard:
    """Labelled documents of one trainer, cut up by source."""

    def __init__(self, trainer, batch_size, length=120, vocab=400, classes=20):
        g = torch.Generator().manual_seed(trainer)
        n = DOCS[trainer]
        self.y = torch.randint(0, classes, (n,), generator=g)
        shift = self.y.unsqueeze(1) * (vocab // classes)
        self.x = torch.where(
            torch.rand(n, length, generator=g) < 0.2,
            shift + torch.randint(0, vocab // classes, (n, length), generator=g),
            torch.randint(0, vocab, (n, length), generator=g),
        )
        self.bs = batch_size

    def __len__(self):
        return (len(self.y) + self.bs - 1) // self.bs

    def epoch(self, seed):
        order = torch.randperm(len(self.y), generator=torch.Generator().manual_seed(seed))
        for idx in order.split(self.bs):
            yield self.x[idx], self.y[idx]
