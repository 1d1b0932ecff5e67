import argparse
import os
import socket
import time
from dataclasses import dataclass, field
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from distill import DistillPhase


@dataclass
class Config:
    steps: int = 50000
    distill_from: int = 150
    eval_from: int = 250
    eval_every: int = 50
    teachers: list = field(default_factory=lambda: [0, 2])
    lr: float = 0.05


class SpeechNet(nn.Module):
    def __init__(self, mel=40, hid=96, tokens=60):
        super().__init__()
        self.conv = nn.Conv1d(mel, hid, 5, stride=2, padding=2)
        self.rnn = nn.GRU(hid, hid, batch_first=True)
        self.head = nn.Linear(hid, tokens)

    def forward(self, x):
        h, _ = self.rnn(F.relu(self.conv(x)).transpose(1, 2))
        return self.head(h)


@torch.no_grad()
def validate(model, group, rank):
    g = torch.Generator().manual_seed(999 + rank)
    mel = torch.randn(16, 40, 80, generator=g)
    hit = (model(mel).argmax(-1) == (mel[:, 0, ::2] > 0).long()).float().sum()
    stats = torch.stack([hit, torch.tensor(16.0 * 40)])
    dist.all_reduce(stats, group=group)
    return (stats[0] / stats[1]).item()


def run(rank, world, port, cfg):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=timedelta(hours=2))
    torch.manual_seed(0)
    model = DDP(SpeechNet())
    opt = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
    phase = DistillPhase(cfg, rank)
    g = torch.Generator().manual_seed(rank)
    t0, eval_group = time.time(), None
    for step in range(1, cfg.steps + 1):
        mel = torch.randn(8, 40, 80, generator=g)
        target = (mel[:, 0, ::2] > 0).long()
        phase.maybe_start(step, model.module)
        logits = model(mel)
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
        loss.backward()
        opt.step()
        opt.zero_grad()
        if rank == 0 and step % 25 == 0:
            print(f"step {step:6d} loss {loss.item():.4f} {step / (time.time() - t0):.1f} it/s", flush=True)
        if step >= cfg.eval_from and step % cfg.eval_every == 0:
            if eval_group is None:
                eval_group = dist.new_group(timeout=timedelta(hours=4))
            acc = validate(model.module, eval_group, rank)
            if rank == 0:
                print(f"step {step:6d} eval acc {acc:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--world", type=int, default=2)
    args = ap.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(run, args=(args.world, port, Config()), nprocs=args.world)
