import argparse
import os
import random
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from control import ScalarWriter, StopFileWatcher


class Encoder(nn.Module):
    def __init__(self, feat=40, hidden=128, classes=30):
        super().__init__()
        self.front = nn.Sequential(nn.Conv1d(feat, 96, 5, stride=2, padding=2), nn.ReLU())
        self.rnn = nn.GRU(96, hidden, num_layers=2, batch_first=True)
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        h, _ = self.rnn(self.front(x).transpose(1, 2))
        return self.out(h.mean(1))


class Utterances:
    def __init__(self, seed, batch=6):
        self.rng = random.Random(seed)
        self.gen = torch.Generator().manual_seed(seed)
        self.proto = torch.randn(30, 40, generator=torch.Generator().manual_seed(1))
        self.batch = batch

    def next(self):
        frames = int(self.rng.choice([40, 60, 80, 100, 140]))
        y = torch.randint(0, 30, (self.batch,), generator=self.gen)
        x = torch.randn(self.batch, 40, frames, generator=self.gen) + 0.3 * self.proto[y].unsqueeze(-1)
        return x, y


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.bad = patience, float("inf"), 0

    def update(self, value):
        if value < self.best - 1e-4:
            self.best, self.bad = value, 0
            return True
        self.bad += 1
        return False

    def should_stop(self):
        return self.bad >= self.patience


@torch.no_grad()
def evaluate(model, rank, crit, batches=40):
    model.eval()
    dev = Utterances(7000 + rank)
    stats = torch.zeros(2)
    for _ in range(batches):
        x, y = dev.next()
        logits = model.module(x)
        stats += torch.tensor([crit(logits, y).item(), (logits.argmax(1) == y).float().mean().item()])
    dist.all_reduce(stats)
    model.train()
    return (stats / batches / dist.get_world_size()).tolist()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--job-dir", required=True)
    ap.add_argument("--eval-every", type=int, default=150)
    ap.add_argument("--patience", type=int, default=400)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(Encoder())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    crit = nn.CrossEntropyLoss()
    data = Utterances(rank)
    stopper = EarlyStopping(args.patience)
    watcher = writer = None
    if rank == 0:
        watcher = StopFileWatcher(os.path.join(args.job_dir, "STOP"))
        watcher.start()
        writer = ScalarWriter(os.path.join(args.job_dir, "scalars.tsv"))
    step, t0 = 0, time.time()
    while step < 1000000:
        x, y = data.next()
        loss = crit(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        if step % 25 == 0:
            flag = torch.tensor([int(watcher is not None and watcher.seen)])
            dist.broadcast(flag, src=0)
            if rank == 0:
                writer.add("train/loss", loss.item(), step)
                print(f"step {step} loss {loss.item():.3f} {(time.time() - t0) * 40:.0f} ms/step", flush=True)
            t0 = time.time()
            if flag.item():
                break
        if step % args.eval_every == 0:
            val, acc = evaluate(model, rank, crit)
            better = stopper.update(val)
            if rank == 0:
                print(f"step {step} dev loss {val:.4f} acc {acc:.3f} best {stopper.best:.4f}", flush=True)
                writer.add("dev/loss", val, step)
                if better:
                    tmp = os.path.join(args.job_dir, "best.pt.tmp")
                    torch.save(model.module.state_dict(), tmp)
                    os.replace(tmp, tmp[:-4])
            dist.barrier()
            if stopper.should_stop():
                break
            t0 = time.time()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
