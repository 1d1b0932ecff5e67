import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader

from smartcache import SmartCache
from studies import list_studies, load_study


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--max-epochs", type=int, default=10)
    p.add_argument("--cache-num", type=int, default=24)
    p.add_argument("--replace-num", type=int, default=4)
    p.add_argument("--init-workers", type=int, default=4)
    a = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    ds = SmartCache(list_studies(rank, world), load_study, a.cache_num, a.replace_num, a.init_workers)
    dl = DataLoader(ds, 4, shuffle=True)
    m = nn.parallel.DistributedDataParallel(nn.Sequential(
        nn.Conv3d(1, 8, 3), nn.ReLU(), nn.Conv3d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 216, 1)))
    opt = torch.optim.Adam(m.parameters(), 1e-3)
    for e in range(a.max_epochs):
        t0 = time.time()
        for x, y in dl:
            loss = nn.functional.binary_cross_entropy_with_logits(m(x)[:, 0], y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.15)
        if rank == 0:
            print(f"epoch {e} loss {loss.item():.3f} {time.time() - t0:.1f}s", flush=True)
        ds.update()


if __name__ == "__main__":
    main()
