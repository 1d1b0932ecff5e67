import argparse
import os
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from shards import Prefetch, ShardCache


class Recognizer(nn.Module):
    def __init__(self, feats=8, hidden=48, tokens=20):
        super().__init__()
        self.conv = nn.Conv1d(feats, hidden, 5, stride=2, padding=2)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, tokens)

    def forward(self, x):
        h = F.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        return self.out(self.rnn(h)[0]).log_softmax(-1)


def batches(lens, feats, rank, world, size, seed):
    starts = np.concatenate([[0], np.cumsum(lens)[:-1]])
    order = np.random.default_rng(seed).permutation(len(lens))
    steps = len(order) // (size * world)
    for s in range(steps):
        pick = order[(s * world + rank) * size :][:size]
        rows = [torch.from_numpy(feats[starts[i] : starts[i] + lens[i]]) for i in pick]
        yield nn.utils.rnn.pad_sequence(rows, batch_first=True), torch.tensor([len(r) for r in rows])


def evaluate(model, data, rank, world, seed):
    model.eval()
    total = torch.zeros(2)
    with torch.no_grad():
        for x, n in batches(*data, rank, world, 8, seed):
            lp = model.module(x)
            total += torch.tensor([-lp.max(-1).values.mean().item(), 1.0])
    model.train()
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cache", required=True)
    p.add_argument("--epochs", type=int, default=100000)
    p.add_argument("--passes", type=int, default=8)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(Recognizer())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    cache = ShardCache(args.cache, int(os.environ["STORE_PORT"]))
    gen = torch.Generator().manual_seed(rank)
    dev = cache.get(0)
    ahead = Prefetch(cache, 1)
    step = 0
    for epoch in range(1, args.epochs):
        t0 = time.time()
        data = ahead.result()
        ahead = Prefetch(cache, epoch + 1)
        if rank == 0:
            print(f"epoch {epoch}: shard ready after {time.time() - t0:.1f}s")
        t0 = time.time()
        for k in range(args.passes):
            for x, n in batches(*data, rank, world, 8, epoch * 100 + k):
                lp = model(x).transpose(0, 1)
                tgt = torch.randint(1, 20, (len(n), 12), generator=gen)
                loss = F.ctc_loss(lp, tgt, (n + 1) // 2, torch.full((len(n),), 12))
                opt.zero_grad()
                loss.backward()
                opt.step()
                step += 1
                if rank == 0 and step % 40 == 0:
                    print(f"  step {step} ctc {loss.item():.3f}")
        if rank == 0:
            print(f"epoch {epoch}: {time.time() - t0:.1f}s for {args.passes} passes")
        if epoch % 2 == 0:
            score = evaluate(model, dev, rank, world, 0)
            if rank == 0:
                print(f"epoch {epoch}: dev {score:.4f}")
                torch.save(model.module.state_dict(), os.path.join(args.cache, "last.pt"))
            dist.barrier()


if __name__ == "__main__":
    main()
