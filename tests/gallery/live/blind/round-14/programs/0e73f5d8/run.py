import argparse
import os
import socket
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from buckets import DynamicBatches, Utterances, collate


class Classifier(nn.Module):
    def __init__(self, dim=64, classes=30):
        super().__init__()
        self.rnn = nn.GRU(20, dim, batch_first=True)
        self.out = nn.Linear(dim, classes)

    def forward(self, x):
        return self.out(self.rnn(x)[0].mean(1))


def worker(rank, world, port, out):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    ds = Utterances()
    batches = DynamicBatches(ds.frames, rank, world)
    loader = DataLoader(ds, batch_sampler=batches, collate_fn=collate, num_workers=1, persistent_workers=True)
    model = DDP(Classifier())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(10 ** 6):
        batches.epoch = epoch
        t0 = time.time()
        n, total = 0, 0.0
        with model.join():
            for x, y in loader:
                loss = nn.functional.cross_entropy(model(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                n += 1
                total += loss.item()
        stats = torch.tensor([n, total], dtype=torch.float64)
        counts = [torch.zeros_like(stats) for _ in range(world)]
        dist.all_gather(counts, stats)
        if rank == 0:
            print(f"epoch {epoch} batches {[int(c[0]) for c in counts]} "
                  f"loss {sum(c[1] for c in counts) / sum(c[0] for c in counts):.3f} {time.time() - t0:.1f}s", flush=True)
            torch.save(model.module.state_dict(), os.path.join(out, "epoch.pt"))
        dist.barrier()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--world", type=int, default=3)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, (args.world, port, tempfile.mkdtemp(prefix="asr_")), nprocs=args.world)


if __name__ == "__main__":
    main()
