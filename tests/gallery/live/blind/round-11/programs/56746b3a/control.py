from datetime import timedelta

import torch.distributed as dist


class LRController:

    def __init__(self, store, rank, lr, factor=0.5, patience=0, tol=0.02):
        self.store, self.rank = store, rank
        self.lr, self.factor, self.patience, self.tol = lr, factor, patience, tol
        self.best, self.stale = float("inf"), 0
        self.store.set_timeout(timedelta(days=1))

    def step(self, epoch, val_loss):
        if self.rank == 0:
            if val_loss < self.best * (1 - self.tol):
                self.best, self.stale = val_loss, 0
            else:
                self.stale += 1
            if epoch > 2 and self.stale <= self.patience:
                return self.lr
            if epoch > 2:
                self.lr, self.stale = self.lr * self.factor, 0
            self.store.set(f"lr/{epoch}", repr(self.lr))
        else:
            self.lr = float(self.store.get(f"lr/{epoch}"))
        return self.lr
