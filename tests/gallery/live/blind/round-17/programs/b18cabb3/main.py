import argparse
import logging
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
import torchmetrics
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from background import CheckpointWriter, StopFileWatcher
from engine import Engine, Events

CLASSES = 20


class ConvNet(nn.Module):
    def __init__(self, c=24):
        super().__init__()
        layers, prev = [], 3
        for mult in (1, 2, 4):
            layers += [nn.Conv2d(prev, mult * c, 3, padding=1), nn.BatchNorm2d(mult * c), nn.ReLU(), nn.MaxPool2d(2)]
            prev = mult * c
        self.body = nn.Sequential(*layers)
        self.fc = nn.Linear(prev, CLASSES)

    def forward(self, x):
        return self.fc(self.body(x).mean((2, 3)))


def make_split(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, CLASSES, (n,), generator=g)
    protos = torch.randn(CLASSES, 3, 24, 24, generator=torch.Generator().manual_seed(9))
    return TensorDataset(protos[y] + 2.0 * torch.randn(n, 3, 24, 24, generator=g), y)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--output-dir", required=True)
    p.add_argument("--max-iters", type=int, default=1000000)
    p.add_argument("--eval-every", type=int, default=400)
    args = p.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING,
                        format="%(asctime)s %(name)s: %(message)s")
    log = logging.getLogger("main")
    torch.manual_seed(0)

    train_set = make_split(6000, 1)
    sampler = DistributedSampler(train_set, seed=4, drop_last=True)
    train_loader = DataLoader(train_set, batch_size=16, sampler=sampler, drop_last=True)
    model = DDP(ConvNet())
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    best = {"acc": 0.0}

    def step(engine, batch):
        x, y = batch
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        return loss.detach()

    trainer = Engine(step)
    if rank == 0:
        writer = CheckpointWriter(args.output_dir)
        writer.start()
        StopFileWatcher(os.path.join(args.output_dir, "STOP")).start()
        val_loader = DataLoader(make_split(1000, 2), batch_size=64)
        metrics = torchmetrics.MetricCollection({
            "acc": torchmetrics.Accuracy(task="multiclass", num_classes=CLASSES, sync_on_compute=False),
            "f1": torchmetrics.F1Score(task="multiclass", num_classes=CLASSES, average="macro", sync_on_compute=False),
        })

    @trainer.on(Events.ITERATION_COMPLETED, every=50)
    def report(engine):
        if rank == 0:
            log.info("iter %d loss %.4f", engine.iteration, engine.output.item())

    @trainer.on(Events.ITERATION_COMPLETED, every=125)
    def reshuffle(engine):
        sampler.set_epoch(engine.iteration // 125)

    @trainer.on(Events.ITERATION_COMPLETED, every=args.eval_every)
    def evaluate(engine):
        result = torch.zeros(2)
        if rank == 0:
            t0 = time.time()
            net = model.module.eval()
            metrics.reset()
            with torch.no_grad():
                for x, y in val_loader:
                    metrics.update(net(x), y)
            net.train()
            scores = metrics.compute()
            result = torch.stack([scores["acc"], scores["f1"]]).float()
            log.info("validation took %.1fs", time.time() - t0)
        dist.broadcast(result, src=0)
        if result[0].item() > best["acc"]:
            best["acc"] = result[0].item()
            if rank == 0:
                writer.submit(engine.iteration, model.module.state_dict())
        if rank == 0:
            log.info("iter %d acc %.3f f1 %.3f (best %.3f)", engine.iteration, *result.tolist(), best["acc"])

    trainer.run(train_loader, args.max_iters)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
