import argparse
import contextlib
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from frames import UtteranceStream, windows


class Encoder(nn.Module):
    def __init__(self, feat=20, hidden=32, classes=12):
        super().__init__()
        self.rnn = nn.GRU(feat, hidden, batch_first=True)
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.out(h.mean(1))


def device_time(frames):
    time.sleep(0.03 + frames.shape[0] * 0.0008)


def train_window(model, optimizer, group, tokens):
    total = torch.tensor([float(tokens)])
    handle = dist.all_reduce(total, async_op=True)
    losses = 0.0
    for i, (frames, label) in enumerate(group):
        last = i == len(group) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            logits = model(frames.unsqueeze(0))
            loss = F.cross_entropy(logits, torch.tensor([label])) * frames.shape[0]
            device_time(frames)
            if last:
                handle.wait()
            loss.backward()
        losses += loss.item()
    scale = dist.get_world_size() / total.item()
    for p in model.parameters():
        p.grad.mul_(scale)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return losses / tokens


@torch.no_grad()
def validate(model, stream, part):
    model.eval()
    hit = torch.zeros(2)
    for k in range(14 + 6 * part):
        frames, label = next(stream)
        hit[0] += float(model.module(frames.unsqueeze(0)).argmax(-1).item() == label)
        hit[1] += 1
        device_time(frames)
    dist.all_reduce(hit)
    model.train()
    return (hit[0] / hit[1]).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--token-budget", type=int, default=900)
    p.add_argument("--valid-every", type=int, default=20)
    args = p.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(3)
    model = DDP(Encoder())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(UtteranceStream(rank), batch_size=None, num_workers=1, prefetch_factor=16,
                        persistent_workers=True)
    valid = iter(UtteranceStream(rank, seed=99))
    start = time.time()
    for step, (group, tokens) in enumerate(windows(loader, args.token_budget), 1):
        loss = train_window(model, optimizer, group, tokens)
        if rank == 0 and step % 5 == 0:
            print(f"[{time.time() - start:6.1f}s] update {step} micro {len(group)} loss {loss:.4f}", flush=True)
        if step % args.valid_every == 0:
            part = (rank + step // args.valid_every) % dist.get_world_size()
            acc = validate(model, valid, part)
            if rank == 0:
                print(f"[{time.time() - start:6.1f}s] valid acc {acc:.3f}", flush=True)


if __name__ == "__main__":
    main()
