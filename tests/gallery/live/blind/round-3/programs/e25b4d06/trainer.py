import os
import time

import torch
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, strategy, callbacks=(), max_epochs=1, ckpt_dir="checkpoints"):
        self.strategy = strategy
        self.callbacks = list(callbacks)
        self.max_epochs = max_epochs
        self.ckpt_dir = ckpt_dir
        self.current_epoch = 0
        self.global_step = 0
        os.makedirs(ckpt_dir, exist_ok=True)

    @property
    def is_global_zero(self):
        return self.strategy.is_global_zero

    def save_checkpoint(self, path):
        state = {
            "epoch": self.current_epoch,
            "global_step": self.global_step,
            "state_dict": self.model.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        self.strategy.write(state, path)
        self.strategy.barrier("Trainer.save_checkpoint")

    def fit(self, module, loader, val_loader):
        self.model = DistributedDataParallel(module)
        self.optimizer = torch.optim.Adam(module.parameters(), lr=2e-3)
        for self.current_epoch in range(self.max_epochs):
            loader.sampler.set_epoch(self.current_epoch)
            for x, y in loader:
                loss = torch.nn.functional.mse_loss(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.global_step += 1
                time.sleep(0.05)
            metric = self.validate(val_loader)
            print(f"epoch {self.current_epoch} step {self.global_step} loss {loss.item():.4f} val {metric:.4f}",
                  flush=True)
            for cb in self.callbacks:
                cb.on_validation_end(self, metric)
            self.save_checkpoint(os.path.join(self.ckpt_dir, "last.ckpt"))

    @torch.no_grad()
    def validate(self, val_loader):
        total = sum(torch.nn.functional.mse_loss(self.model.module(x), y).item() for x, y in val_loader)
        return self.strategy.reduce_mean(total / len(val_loader))
