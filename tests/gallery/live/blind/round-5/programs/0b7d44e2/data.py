import torch


class Shapes:
    """synthetic images, each rank has its own slice"""

    def __init__(self, rank, n=25, bs=16):
        self.rank, self.n, self.bs = rank, n, bs
        self.g = torch.Generator().manual_seed(100 + rank)
        self.seen = 0

    def __iter__(self):
        for _ in range(self.n):
            x = torch.randn(self.bs, 3 * 16 * 16, generator=self.g)
            y = torch.randint(0, 10, (self.bs,), generator=self.g)
            self.seen += 1
            if self.rank == 2 and self.seen == 70:
                x[3, 17] = float("inf")   # one broken pixel in the scan
            yield x, y
