import logging
import time

import torch
import torch.nn.functional as F

log = logging.getLogger("trainer")


class Trainer:
    def __init__(self, model, optimizer, train_loader, val_loader, checkpointer, rank, patience=20):
        self.model, self.optimizer = model, optimizer
        self.train_loader, self.val_loader = train_loader, val_loader
        self.checkpointer = checkpointer
        self.rank = rank
        self.patience = patience
        self.best_val_loss = float("inf")
        self.bad_epochs = 0

    def train_epoch(self, epoch):
        self.model.train()
        t0, total = time.time(), 0.0
        for x, y in self.train_loader:
            loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        if self.rank == 0:
            log.info("epoch %d train loss %.4f (%.1fs)", epoch, total / len(self.train_loader), time.time() - t0)

    @torch.no_grad()
    def val_epoch(self):
        self.model.eval()
        total, n = 0.0, 0
        for x, y in self.val_loader:
            total += F.cross_entropy(self.model.module(x), y, reduction="sum").item()
            n += y.numel()
        return total / n

    def run(self, epochs):
        for epoch in range(epochs):
            self.train_epoch(epoch)
            val_loss = self.val_epoch()
            if self.rank == 0:
                log.info("epoch %d val loss %.4f best %.4f", epoch, val_loss, self.best_val_loss)
            if val_loss < self.best_val_loss:
                self.best_val_loss = val_loss
                self.bad_epochs = 0
                self.checkpointer.save_checkpoint(self.model, self.optimizer, epoch)
            else:
                self.bad_epochs += 1
                if self.bad_epochs >= self.patience:
                    break
