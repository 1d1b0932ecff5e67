import itertools
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from prefetch import Prefetcher

BATCH, DIM, EPOCHS, FILES = 32, 256, 3, 18


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(DIM, 512), nn.GELU(), nn.Linear(512, 32))
        self.dec = nn.Sequential(nn.Linear(32, 512), nn.GELU(), nn.Linear(512, DIM))

    def forward(self, x):
        return self.dec(self.enc(x))


def common_length(n):
    t = torch.tensor([n])
    dist.all_reduce(t, op=dist.ReduceOp.MIN)
    return int(t)


def run_epoch(epoch, rank, world, model, opt):
    files = [f for f in range(FILES) if f % world == rank]
    source = Prefetcher(files, BATCH, DIM)
    steps = common_length(len(source))
    start = time.time()
    for step, rows in enumerate(itertools.islice(source, steps)):
        x = torch.from_numpy(rows)
        opt.zero_grad()
        loss = F.mse_loss(model(x), x)
        loss.backward()
        opt.step()
        if rank == 0 and step % 10 == 0:
            print(f"epoch {epoch} step {step}/{steps} loss {loss.item():.4f}", flush=True)
    if rank == 0:
        print(f"epoch {epoch} took {time.time() - start:.1f}s", flush=True)
    return source


def main():
    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(AutoEncoder())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    sources = [run_epoch(e, rank, world, model, opt) for e in range(EPOCHS)]
    for s in sources:
        s.close()
    if rank == 0:
        torch.save(model.module.state_dict(), os.path.join(os.environ.get("TMPDIR", "/tmp"), f"autoenc-{os.getpid()}.pt"))
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        print("finished", flush=True)


if __name__ == "__main__":
    main()
