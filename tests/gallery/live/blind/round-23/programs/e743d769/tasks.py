import torch

TASKS = ("caption", "ocr", "vqa", "grounding")


class TaskMixture:
    """Weighted stream over the tasks, one task per batch."""

    def __init__(self, rank, dim, batch_size=8):
        self.gen = torch.Generator().manual_seed(40 + rank)
        self.weights = torch.tensor([0.4, 0.2, 0.25, 0.15])
        self.dim = dim
        self.batch_size = batch_size

    def __iter__(self):
        while True:
            task = TASKS[int(torch.multinomial(self.weights, 1, generator=self.gen))]
            x = torch.randn(self.batch_size, self.dim, generator=self.gen)
            y = x.roll(TASKS.index(task) + 1, dims=1)
            yield task, x, y
