import argparse
import glob
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from shards import DIM, ShardCache, ShardDataset, write_shards

WARM = 2


class AutoEncoder(nn.Module):
    def __init__(self, width=512, code=32):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(DIM, width), nn.GELU(), nn.Linear(width, code))
        self.dec = nn.Sequential(nn.Linear(code, width), nn.GELU(), nn.Linear(width, DIM))

    def forward(self, x):
        return self.dec(self.enc(x))


@torch.no_grad()
def validate(model, paths, cache):
    model.eval()
    cache.prefetch(paths)
    loader = DataLoader(ShardDataset(paths, cache), batch_size=64, num_workers=2)
    stat = torch.zeros(2)
    for x in loader:
        stat += torch.tensor([(model(x) - x).pow(2).mean(1).sum().item(), len(x)])
    dist.all_reduce(stat)
    model.train()
    return (stat[0] / stat[1]).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--steps", type=int, default=50000)
    p.add_argument("--val-every", type=int, default=200)
    args = p.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        write_shards(args.data, 5)
    dist.barrier()

    cache = ShardCache()
    mine = sorted(glob.glob(os.path.join(args.data, "val-*.gz")))[rank::world]
    for path in mine[:WARM]:
        cache.get(path)

    torch.manual_seed(rank)
    basis = torch.randn(48, DIM, generator=torch.Generator().manual_seed(1))
    model = DDP(AutoEncoder())
    opt = torch.optim.AdamW(model.parameters(), 1e-3)
    t0 = time.time()
    for step in range(1, args.steps + 1):
        x = torch.randn(128, 48) @ basis / 7
        loss = nn.functional.mse_loss(model(x), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 25 == 0:
            print(f"step {step} loss {loss.item():.4f} {(time.time() - t0) / step * 1e3:.0f} ms/step", flush=True)
        if step % args.val_every == 0:
            mse = validate(model.module, mine, cache)
            if rank == 0:
                print(f"val step {step} mse {mse:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
