import time

import torch
import torch.nn.functional as F

from .dist_utils import get_dist_info


class EpochRunner:
    def __init__(self, model, optimizer, log_interval=20):
        self.model = model
        self.optimizer = optimizer
        self.log_interval = log_interval
        self.rank, self.world = get_dist_info()
        self.epoch = 0
        self.iter = 0

    def train_epoch(self, loader):
        self.model.train()
        loader.sampler.set_epoch(self.epoch)
        t0 = time.time()
        for x, y in loader:
            loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.iter += 1
            if self.rank == 0 and self.iter % self.log_interval == 0:
                dt = (time.time() - t0) / self.log_interval
                t0 = time.time()
                print(f"Epoch [{self.epoch}] iter {self.iter} loss {loss.item():.4f} time {dt:.3f}", flush=True)
        self.epoch += 1

    @torch.no_grad()
    def val_epoch(self, loader):
        self.model.eval()
        hit = n = 0
        for x, y in loader:
            hit += (self.model(x).argmax(1) == y).sum().item()
            n += y.numel()
        return hit / max(n, 1)
