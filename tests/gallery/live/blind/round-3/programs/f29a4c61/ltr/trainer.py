import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from .datasets import Sequences


def run(rank, world, port, epochs):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    train_set, val_set = Sequences("got10k-train", 480, 5.0), Sequences("got10k-val", 64, 3.0)
    train = DataLoader(train_set, batch_size=8, num_workers=2, sampler=DistributedSampler(train_set),
                       multiprocessing_context="fork")
    val = DataLoader(val_set, batch_size=8, num_workers=1, sampler=DistributedSampler(val_set, shuffle=False),
                     multiprocessing_context="fork")
    net = DDP(nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 4)))
    opt = torch.optim.Adam(net.parameters())
    for epoch in range(1, epochs + 1):
        train.sampler.set_epoch(epoch)
        t0 = time.time()
        for i, (x, box) in enumerate(train, 1):
            loss = nn.functional.l1_loss(net(x), box)
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.2)
            if rank == 0 and i % 10 == 0:
                print(f"[train: {epoch}, {i} / {len(train)}] FPS: {i * 8 / (time.time() - t0):.1f}, Loss: {loss.item():.5f}",
                      flush=True)
        total = torch.zeros(1)
        with torch.no_grad():
            for x, box in val:
                total += nn.functional.l1_loss(net.module(x), box)
        dist.all_reduce(total)
        if rank == 0:
            print(f"[val: {epoch}] Loss: {total.item() / world / len(val):.5f}", flush=True)
