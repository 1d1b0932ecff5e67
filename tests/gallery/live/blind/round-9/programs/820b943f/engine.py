import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torchmetrics.classification import MulticlassAccuracy


def make_model(classes=8):
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(3),
        nn.Flatten(), nn.Linear(288, classes),
    )


def train_one_epoch(model, opt, loader, epoch, log):
    model.train()
    t0, n = time.time(), 0
    for x, y in loader:
        loss = F.cross_entropy(model(x), torch.as_tensor(y))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        n += 1
        if n % 20 == 0:
            log(f"epoch {epoch} iter {n} loss {loss.item():.4f} {(time.time() - t0) / n * 1e3:.0f} ms")


@torch.no_grad()
def validate(model, loader, classes=8):
    model.eval()
    metric = MulticlassAccuracy(num_classes=classes, average="micro")
    for x, y in loader:
        metric.update(model.module(x), torch.as_tensor(y))
    return metric.compute().item()


def write_checkpoint(model, opt, path, epoch):
    if dist.get_rank() == 0:
        torch.save({"model": model.module.state_dict(), "opt": opt.state_dict(), "epoch": epoch}, path)
    dist.barrier()
