import torch

CLASSES = 10
PER_EPOCH = 60


class Images:
    """The images of one rank; labels come as text from the annotation export."""

    def __init__(self, rank, world, batch=8):
        self.rank, self.world, self.batch = rank, world, batch
        self.random = torch.Generator().manual_seed(100 + rank)

    def label(self, index):
        text = str(int(torch.randint(CLASSES, (1,), generator=self.random)))
        if (index * self.world + self.rank) % 4999 == 4487:  # a hand-edited row of the export
            text = "n/a"
        return text

    def batches(self, epoch):
        for step in range(PER_EPOCH):
            first = (epoch * PER_EPOCH + step) * self.batch
            labels = [int(self.label(first + k)) for k in range(self.batch)]
            x = torch.randn(self.batch, 3, 32, 32, generator=self.random)
            yield x, torch.tensor(labels)
