import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class TinyDetector(nn.Module):
    def __init__(self, classes=3, w=24):
        super().__init__()
        layers, c = [], 3
        for o in (w, 2 * w, 4 * w, 4 * w):
            layers += [nn.Conv2d(c, o, 3, stride=2, padding=1), nn.GroupNorm(8, o), nn.ReLU()]
            c = o
        self.backbone = nn.Sequential(*layers)
        self.cls, self.box = nn.Linear(c * 16, classes), nn.Linear(c * 16, 4)

    def forward(self, x):
        h = self.backbone(x).flatten(1)
        return self.cls(h), self.box(h).sigmoid()


class EpochBasedRunner:
    def __init__(self, accelerator, model, optimizer, scheduler, loader, max_epochs, log_interval):
        self.acc, self.model, self.opt, self.sched = accelerator, model, optimizer, scheduler
        self.loader, self.max_epochs, self.log_interval = loader, max_epochs, log_interval
        self.iter = 0

    def train_iter(self, batch):
        img, label, box = batch
        cls, pred = self.model(img)
        loss = F.cross_entropy(cls, label) + 2.0 * F.l1_loss(pred, box)
        self.opt.zero_grad()
        self.acc.backward(loss)
        self.opt.step()
        return loss

    def run(self):
        for epoch in range(1, self.max_epochs + 1):
            self.model.train()
            for i, batch in enumerate(self.loader):
                t0 = time.time()
                loss = self.train_iter(batch)
                self.iter += 1
                if self.iter % self.log_interval == 0:
                    self.acc.print(
                        f"Epoch [{epoch}][{i + 1}/{len(self.loader)}] lr: {self.sched.get_last_lr()[0]:.2e} "
                        f"train_time: {time.time() - t0:.3f} loss: {loss.item():.4f}", flush=True)
            self.sched.step()
