import logging
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

from .reader import batches
from .tracker import MetricTracker

log = logging.getLogger(__name__)


class GradientDescentTrainer:
    def __init__(self, model, optimizer, train_data, val_data, args):
        self.model, self.optimizer = model, optimizer
        self.train_data, self.val_data = train_data, val_data
        self.args = args
        self.primary = dist.get_rank() == 0
        self.tracker = MetricTracker("-loss", args.patience)
        self.gen = torch.Generator().manual_seed(17 + dist.get_rank())
        self.best_state = None

    def _train_epoch(self):
        self.model.train()
        total = n = 0
        for x, y in batches(self.train_data, self.args.batch_size, self.gen):
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total, n = total + loss.item(), n + 1
            time.sleep(0.03)
        return {"loss": total / n}

    @torch.no_grad()
    def _validate(self):
        self.model.eval()
        net = self.model.module
        total = correct = n = 0
        for x, y in batches(self.val_data, self.args.batch_size):
            logits = net(x)
            total += F.cross_entropy(logits, y, reduction="sum").item()
            correct += (logits.argmax(-1) == y).sum().item()
            n += len(y)
        return {"loss": total / n, "accuracy": correct / n}

    def train(self):
        for epoch in range(self.args.epochs):
            tr = self._train_epoch()
            val = self._validate()
            self.tracker.add_metrics(val)
            if self.primary:
                log.info("epoch %d train_loss %.4f val_loss %.4f val_acc %.3f",
                         epoch, tr["loss"], val["loss"], val["accuracy"])
            if self.tracker.is_best_so_far():
                self.best_state = {k: v.clone() for k, v in self.model.module.state_dict().items()}
            if self.tracker.should_stop_early():
                log.info("worker %d: ran out of patience, stopping training", dist.get_rank())
                break
        dist.barrier()
        self.model.module.load_state_dict(self.best_state)
        return {"best_epoch": self.tracker.best_epoch, "best": self.tracker.best}
