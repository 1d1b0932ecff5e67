import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from clips import ClipReader
from prefetch import Prefetcher


class NextFrame(nn.Module):
    def __init__(self, features=40, hidden=192):
        super().__init__()
        self.rnn = nn.GRU(features, hidden, num_layers=2, batch_first=True)
        self.out = nn.Linear(hidden, features)

    def forward(self, x):
        return x[:, -1] + self.out(self.rnn(x)[0][:, -1])


def common_steps(reader):
    size = torch.tensor([len(reader)])
    sizes = [torch.zeros_like(size) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, size)
    return int(min(sizes)), [int(s) for s in sizes]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--clips", type=int, default=1000)
    p.add_argument("--prefetch", type=int, default=4)
    p.add_argument("--seed", type=int, default=12)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed)
    model = DistributedDataParallel(NextFrame())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    reader = ClipReader(args.clips, rank, world, args.seed)
    steps, sizes = common_steps(reader)
    if rank == 0:
        print(f"batches per rank {sizes}, running {steps}", flush=True)

    batches = Prefetcher(reader, args.prefetch)
    mark = time.time()
    for step, (x, y) in enumerate(batches, 1):
        loss = F.smooth_l1_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 0 and rank == 0:
            print(f"step {step}/{steps} loss {loss.item():.4f} {time.time() - mark:.2f}s", flush=True)
            mark = time.time()
        if step == steps:
            break

    batches.shutdown()
    dist.barrier()
    if rank == 0:
        torch.save(model.module.state_dict(), "/tmp/nextframe.pt")
        print("saved /tmp/nextframe.pt", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
