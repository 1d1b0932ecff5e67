import copy
import json
import random
from types import SimpleNamespace

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset


def load_config(path):
    with open(path) as f:
        return SimpleNamespace(**json.load(f))


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def make_dataloaders(cfg):
    g = torch.Generator().manual_seed(cfg.seed)
    train = torch.rand(4096, 3, 16, 16, generator=g) * 2 - 1
    val = torch.rand(512, 3, 16, 16, generator=g) * 2 - 1
    return (DataLoader(TensorDataset(train), cfg.batch_size, shuffle=True, drop_last=True),
            DataLoader(TensorDataset(val), cfg.batch_size))


class EMA:
    def __init__(self, model, decay):
        self.decay = decay
        self.model = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for e, p in zip(self.model.state_dict().values(), model.state_dict().values()):
            if e.dtype.is_floating_point:
                e.mul_(self.decay).add_(p, alpha=1 - self.decay)
            else:
                e.copy_(p)


def forever(loader):
    while True:
        yield from loader
