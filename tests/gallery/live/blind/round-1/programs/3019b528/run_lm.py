import argparse
import datetime
import logging
import os
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

import shards

log = logging.getLogger("lm")


class Phase:
    """Named meeting points between the ranks, on top of the key-value store."""

    def __init__(self, store, world):
        self.store, self.world = store, world

    def done(self, name):
        key = f"phase/{name}"
        self.store.add(key, 1)
        while int(self.store.add(key, 0)) < self.world:
            time.sleep(0.2)


class TinyGRU(nn.Module):
    def __init__(self, vocab=800, dim=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, x):
        return self.out(self.gru(self.emb(x))[0])


def token_stats(files):
    counts = np.zeros(800, dtype=np.int64)
    for path in files:
        counts += np.bincount(np.load(path).ravel(), minlength=800)
    return counts


def train(model, files, world, args):
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    while step < args.steps:
        block = torch.from_numpy(np.load(files[step % len(files)]).astype(np.int64))
        rows = block[torch.randint(0, len(block), (args.bs,))]
        loss = nn.functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= world
        opt.step()
        step += 1
        if step % 50 == 0:
            log.info("step %d loss %.3f", step, loss.item())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--root", default="corpus")
    ap.add_argument("--min-quality", type=float, default=0.5)
    ap.add_argument("--steps", type=int, default=5000)
    ap.add_argument("--bs", type=int, default=16)
    args = ap.parse_args()

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [rank {rank}] %(message)s")
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), world, rank == 0,
                          timeout=datetime.timedelta(hours=1))
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
    phase = Phase(dist.PrefixStore("lm", store), world)

    lang = shards.ensure_shards(args.root, rank)
    phase.done("download")
    files = shards.select(args.root, lang, args.min_quality)
    log.info("%s: %d shards selected", lang, len(files))
    if not files:
        log.info("nothing to do here")
        return
    counts = token_stats(files)
    np.save(os.path.join(args.root, f"counts_{rank}.npy"), counts)
    phase.done("stats")

    total = sum(np.load(os.path.join(args.root, f"counts_{r}.npy")) for r in range(world))
    log.info("corpus: %d tokens", int(total.sum()))
    torch.manual_seed(0)
    train(TinyGRU(), files, world, args)
    phase.done("train")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
