import time

import torch
import torch.distributed as dist
import torch.nn.functional as F


class Callback:
    def on_epoch_start(self, runner): ...
    def on_batch_end(self, runner): ...


class DepthAnneal(Callback):
    def __init__(self, start):
        self.start = start

    def on_epoch_start(self, runner):
        runner.raw_model.schedule.active = runner.epoch >= self.start


class ConsoleLogger(Callback):
    def on_batch_end(self, runner):
        if dist.get_rank() == 0 and runner.batch % 10 == 0:
            print(f"{runner.epoch}/{runner.batch} loss={runner.loss:.3f}", flush=True)


class SupervisedRunner:
    def __init__(self, model, loader, optimizer, callbacks):
        self.raw_model = model
        self.model = torch.nn.parallel.DistributedDataParallel(model)
        self.loader, self.optimizer, self.callbacks = loader, optimizer, callbacks

    def _event(self, name):
        for c in self.callbacks:
            getattr(c, name)(self)

    def train(self, epochs):
        for self.epoch in range(1, epochs + 1):
            self._event("on_epoch_start")
            for self.batch, (x, y) in enumerate(self.loader):
                loss = F.cross_entropy(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.loss = loss.item()
                self._event("on_batch_end")
                time.sleep(0.1)
