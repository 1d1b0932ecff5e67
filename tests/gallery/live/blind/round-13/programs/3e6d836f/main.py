import contextlib
import logging
import os
import threading
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from files import NpyShards, build
from scaler import DynamicScaler

log = logging.getLogger("main")


class Net(nn.Module):
    def __init__(self, width=24, classes=12):
        super().__init__()
        layers, c = [], 3
        for w in (width, 2 * width, 2 * width):
            layers += [nn.Conv2d(c, w, 3, padding=1), nn.GroupNorm(4, w), nn.ReLU(), nn.MaxPool2d(2)]
            c = w
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(c * 9, classes)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


class Heartbeat(threading.Thread):
    def __init__(self, path):
        super().__init__(name="heartbeat", daemon=True)
        self.path = path

    def run(self):
        while True:
            with open(self.path, "w") as f:
                f.write(str(time.time()))
            time.sleep(5)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s <{rank}> %(message)s")
    out = os.environ["OUT"]
    if rank == 0:
        build(out)
    dist.barrier()
    Heartbeat(os.path.join(out, f"alive.{rank}")).start()
    ds = NpyShards(out)
    sampler = DistributedSampler(ds, world, rank, drop_last=True)
    loader = DataLoader(ds, 16, sampler=sampler, num_workers=1, persistent_workers=True, drop_last=True)
    torch.manual_seed(0)
    model = DistributedDataParallel(Net())
    model.register_comm_hook(None, fp16_compress_hook)
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    crit = nn.CrossEntropyLoss()
    scaler, accum = DynamicScaler(), 4
    params = list(model.parameters())
    step = 0
    for epoch in range(10000):
        sampler.set_epoch(epoch)
        t0, right, seen = time.time(), 0, 0
        for i, (x, y) in enumerate(loader):
            sync = (i + 1) % accum == 0
            with contextlib.nullcontext() if sync else model.no_sync():
                logits = model(x)
                (crit(logits, y) / accum * scaler.value).backward()
            right += (logits.argmax(1) == y).sum().item()
            seen += y.numel()
            if sync:
                scaler.step(params, opt)
                opt.zero_grad()
                step += 1
                if rank == 0 and step % 10 == 0:
                    log.info("step %d scale %g skipped %d acc %.3f", step, scaler.value, scaler.skipped, right / seen)
        opt.zero_grad()
        if rank == 0:
            log.info("epoch %d done in %.1fs", epoch, time.time() - t0)
        states = [None] * world
        dist.all_gather_object(states, {"right": right, "seen": seen, "rng": torch.get_rng_state()[:16].tolist()})
        if rank == 0 and epoch % 2 == 1:
            torch.save({"model": model.module.state_dict(), "opt": opt.state_dict(), "ranks": states}, os.path.join(out, "last.pt"))
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
