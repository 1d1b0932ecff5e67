import argparse
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from hooks import EvalHook, IterTimerHook, OptimizerHook, TextLoggerHook
from log_buffer import LogBuffer


def small_images(n, seed, classes=6):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (n,), generator=g)
    x = torch.randn(n, 3, 12, 12, generator=g) + y.view(-1, 1, 1, 1) * 0.2
    return TensorDataset(x, y)


def build_net(classes=6):
    return nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(),
                         nn.Flatten(), nn.Linear(72, classes))


class EpochBasedRunner:
    def __init__(self, model, optimizer, rank):
        self.model, self.optimizer, self.rank = model, optimizer, rank
        self.log_buffer = LogBuffer()
        self.epoch_scores = []
        self.hooks = []
        self.epoch = self.inner_iter = self.iters = 0
        self.outputs = None

    def register_hook(self, hook):
        self.hooks.append(hook)

    def call_hook(self, name):
        for h in self.hooks:
            getattr(h, name)(self)

    def train(self, loader):
        self.iters = len(loader)
        self.call_hook("before_epoch")
        for self.inner_iter, (x, y) in enumerate(loader):
            loss = F.cross_entropy(self.model(x), y)
            time.sleep(0.12)
            self.outputs = {"loss": loss, "num_samples": len(y)}
            self.call_hook("after_train_iter")
        self.call_hook("after_train_epoch")
        self.epoch += 1

    def run(self, loader, max_epochs):
        while self.epoch < max_epochs:
            loader.sampler.set_epoch(self.epoch)
            self.train(loader)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--interval", type=int, default=10)
    p.add_argument("--max-epochs", type=int, default=200)
    args = p.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(minutes=40))
    rank = dist.get_rank()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train_set, val_set = small_images(1632, 1), small_images(60, 2)
    loader = DataLoader(train_set, batch_size=16, sampler=DistributedSampler(train_set), drop_last=True)
    model = DDP(build_net())
    runner = EpochBasedRunner(model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), rank)
    runner.register_hook(OptimizerHook())
    runner.register_hook(IterTimerHook())
    runner.register_hook(EvalHook(val_set, interval=2))
    runner.register_hook(TextLoggerHook(args.interval))
    runner.run(loader, args.max_epochs)


if __name__ == "__main__":
    main()
