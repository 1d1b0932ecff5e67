import argparse
import os
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

from encoder import MultipleNegatives, SentenceEncoder
from pairs import ParaphrasePairs


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--encode-threads", type=int, default=os.cpu_count())
    p.add_argument("--loader-procs", type=int, default=2)
    a = p.parse_args()
    torch.set_num_threads(a.encode_threads)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    ds = ParaphrasePairs(6400)
    sampler = DistributedSampler(ds)
    dl = DataLoader(ds, a.batch, sampler=sampler, num_workers=a.loader_procs, persistent_workers=True)
    model = torch.nn.parallel.DistributedDataParallel(MultipleNegatives(SentenceEncoder()))
    opt = torch.optim.AdamW(model.parameters(), 1e-4)
    t = time.time()
    for e in range(a.epochs):
        sampler.set_epoch(e)
        for i, (x, y) in enumerate(dl):
            loss = model(x, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if rank == 0:
                now = time.time()
                print(f"epoch {e} batch {i} loss {loss.item():.3f} {now - t:.2f}s", flush=True)
                t = now


if __name__ == "__main__":
    main()
