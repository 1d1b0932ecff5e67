import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from common import setup_training_handlers
from engine import Engine, Events


class UNetish(nn.Module):
    def __init__(self, w=12):
        super().__init__()
        self.d = nn.Conv2d(1, w, 3, stride=2, padding=1)
        self.m = nn.Conv2d(w, w, 3, padding=1)
        self.u = nn.ConvTranspose2d(w, 1, 2, stride=2)

    def forward(self, x):
        return self.u(torch.relu(self.m(torch.relu(self.d(x)))))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--log-from-epoch", type=int, default=1)
    a = p.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    x = torch.randn(800, 1, 16, 16, generator=torch.Generator().manual_seed(1))
    ds = TensorDataset(x, F.avg_pool2d(x, 3, 1, 1))
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, 8, sampler=sampler)
    model = nn.parallel.DistributedDataParallel(UNetish())
    opt = torch.optim.Adam(model.parameters(), 1e-3)

    def train_update_function(engine, batch):
        x, y = batch
        out = model(x)
        l1, l2 = (out - y).abs().mean(), (out - y).square().mean()
        opt.zero_grad()
        (l1 + l2).backward()
        opt.step()
        return {"loss": (l1 + l2).item(), "l1": l1.item(), "l2": l2.item()}

    trainer = Engine(train_update_function)
    trainer.add_event_handler(Events.EPOCH_STARTED, lambda e: sampler.set_epoch(e.state.epoch))
    setup_training_handlers(trainer, ["l1", "l2"], a.log_from_epoch)
    trainer.run(loader, a.epochs)


if __name__ == "__main__":
    main()
