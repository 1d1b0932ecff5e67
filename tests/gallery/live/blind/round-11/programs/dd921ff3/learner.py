import os
import queue
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from replay import Replay, TrajectoryReader


class Critic(nn.Module):
    def __init__(self, obs=48, hid=192, depth=6):
        super().__init__()
        self.inp = nn.Linear(obs, hid)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(hid), nn.Linear(hid, hid), nn.SiLU()) for _ in range(depth))
        self.out = nn.Linear(hid, 1)

    def forward(self, x):
        h = self.inp(x)
        for b in self.blocks:
            h = h + b(h)
        return self.out(h).squeeze(-1)


def collect(inbox, every=0.25):
    g = torch.Generator().manual_seed(4)
    while True:
        for row in torch.randn(16, 48, generator=g):
            inbox.put(row)
        time.sleep(every)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    rank = dist.get_rank()
    torch.manual_seed(0)
    replay = Replay(seed=rank)
    for row in torch.randn(2000, 48, generator=torch.Generator().manual_seed(rank)):
        replay.append(row)
    if rank == 0:
        inbox = queue.Queue()
        threading.Thread(target=collect, args=(inbox,), name="env", daemon=True).start()
        TrajectoryReader(inbox, replay).start()
    model = DDP(Critic())
    opt = torch.optim.Adam(model.parameters(), lr=3e-4)
    t0 = time.time()
    for step in range(1, 10**7):
        obs = replay.sample(128)
        loss = F.smooth_l1_loss(model(obs), obs[:, :6].tanh().sum(1))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if rank == 0 and step % 20 == 0:
            print(f"step {step} td {loss.item():.4f} {(time.time() - t0) / step * 1e3:.1f} ms/step", flush=True)


if __name__ == "__main__":
    main()
