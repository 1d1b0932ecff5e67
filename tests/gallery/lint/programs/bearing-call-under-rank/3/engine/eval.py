import torch
from torch import distributed as dist


class Evaluator:
    def __init__(self, model):
        self.model = model

    def score(self):
        part = torch.zeros(2)
        self._merge(part)
        return part[0] / part[1]

    def _merge(self, part):
        dist.all_reduce(part)
