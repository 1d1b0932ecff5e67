import argparse
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from metrics import MetricWriter
from uploader import Uploader


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
        )
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))

    def forward(self, x):
        return self.fc(self.conv(x))


def train(rank, world, port, args):
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    model = DDP(Net())
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    writer = uploader = None
    if rank == 0:
        writer = MetricWriter(os.path.join(args.out, "metrics.jsonl"))
        uploader = Uploader(writer)
    t0 = time.time()
    for step in range(1, args.steps + 1):
        x = torch.randn(8, 3, 24, 24)
        y = (x.mean((1, 2, 3)) * 40).long().clamp(-4, 5) + 4
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0:
            writer.write("step", step=step, loss=loss.item())
            writer.histogram("grad", [(n, p.grad) for n, p in model.module.named_parameters()], step)
            if step % 10 == 0:
                path = os.path.join(args.out, f"step{step % 100:03d}.pt")
                torch.save(model.module.state_dict(), path)
                uploader.submit(path)
            if step % 20 == 0:
                print(f"step {step} loss {loss.item():.4f} {(time.time() - t0) / step * 1e3:.0f} ms", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--world", type=int, default=3)
    ap.add_argument("--steps", type=int, default=100000)
    ap.add_argument("--out", default="out")
    args = ap.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(train, args=(args.world, port, args), nprocs=args.world)
