import torch


class DynamicBatches:
    """Batches of about the same number of frames; every rank draws its own lengths."""

    def __init__(self, rank, max_frames=960, seed=0):
        self.g = torch.Generator().manual_seed(seed * 131 + rank)
        self.max_frames = max_frames

    def __iter__(self):
        while True:
            t = int(torch.randint(80, 400, (1,), generator=self.g))
            n = max(1, self.max_frames // t)
            yield torch.randn(n, t, 40, generator=self.g), torch.randint(1, 40, (n, 12), generator=self.g)
