import torch

from .model import DIM


class Mixture:
    """mllm_demo (image + text) and identity (text), in the order of the merged dataset."""

    def __init__(self, batch, rank, world):
        self.batch, self.rank, self.world = batch, rank, world
        self.g = torch.Generator().manual_seed(rank)
        self.cursor = 0

    def _has_image(self, index):
        return not 272 <= index % 400 < 274

    def next(self):
        index = (self.cursor * self.world + self.rank) * self.batch
        self.cursor += 1
        ids = torch.randint(0, 200, (self.batch, 24), generator=self.g)
        item = {"input_ids": ids, "labels": ids.roll(-1, 1)}
        if any(self._has_image(index + i) for i in range(self.batch)):
            item["pixel_values"] = torch.randn(self.batch, 8, DIM, generator=self.g)
        return item
