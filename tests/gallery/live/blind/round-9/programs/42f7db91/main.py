import contextlib
import os
import random
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset

from buckets import RotatingBuckets

WORLD, BUCKETS, EPOCHS = 4, 4, 500


class Speech(Dataset):
    def __init__(self, n=9600, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.lengths = torch.randint(20, 140, (n,), generator=g).tolist()

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        y = i % 12
        return torch.randn(self.lengths[i], 40, generator=g) + 0.1 * y, y


def pad(items):
    xs, ys = zip(*items)
    return nn.utils.rnn.pad_sequence(xs, batch_first=True), torch.tensor([len(x) for x in xs]), torch.tensor(ys)


class Encoder(nn.Module):
    def __init__(self, dim=64, classes=12):
        super().__init__()
        self.rnn = nn.GRU(40, dim, 2, batch_first=True)
        self.out = nn.Linear(dim, classes)

    def forward(self, x, n):
        h, _ = self.rnn(x)
        return self.out(h[torch.arange(len(n)), n - 1])


@torch.no_grad()
def score(net, loader, limit=12):
    net.eval()
    good = total = 0
    for k, (x, n, y) in enumerate(loader):
        if k == limit:
            break
        good += int((net(x, n).argmax(-1) == y).sum())
        total += len(y)
    net.train()
    return good / total


def worker(rank, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD)
    torch.manual_seed(0)
    train = Speech()
    sampler = RotatingBuckets(train.lengths, 8, BUCKETS, rank, WORLD)
    loader = DataLoader(train, batch_sampler=sampler, collate_fn=pad)
    dev = DataLoader(Speech(400, 9), batch_size=8, collate_fn=pad)
    net = Encoder()
    model = DDP(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    best, bad, update, t0 = 0.0, 0, 0, time.time()
    for epoch in range(EPOCHS):
        sampler.epoch = epoch
        for i, (x, n, y) in enumerate(loader):
            last = (i + 1) % BUCKETS == 0
            with contextlib.nullcontext() if last else model.no_sync():
                (F.cross_entropy(model(x, n), y) / BUCKETS).backward()
            if not last:
                continue
            optimizer.step()
            optimizer.zero_grad()
            update += 1
            if rank == 0 and update % 10 == 0:
                print(f"epoch {epoch} update {update} {(time.time() - t0) / update * 1000:.0f} ms/update", flush=True)
            if update % 100 == 0:
                state = torch.zeros(2)
                if rank == 0:
                    acc = score(net, dev)
                    bad = 0 if acc > best else bad + 1
                    best = max(best, acc)
                    torch.save(net.state_dict(), os.path.join("out", "last.pt"))
                    print(f"update {update} dev accuracy {acc:.4f} best {best:.4f}", flush=True)
                    state = torch.tensor([acc, float(bad >= 400)])
                dist.broadcast(state, 0)
                if state[1] > 0:
                    dist.destroy_process_group()
                    return
    dist.destroy_process_group()


if __name__ == "__main__":
    os.makedirs("out", exist_ok=True)
    mp.spawn(worker, args=(random.randint(20000, 50000),), nprocs=WORLD)
