import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from shards import get_shard


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DDP(nn.Sequential(nn.Linear(96, 32), nn.ReLU(), nn.Linear(32, 96)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for n in range(2000):
        rows = get_shard(n)
        for i in range(rank * 16, len(rows) - 16, 32):
            x = rows[i:i + 16]
            if len(x) < 16:
                break
            loss = (model(x) - x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.4)
            if i >= 32 * 11:
                break
        if rank == 0:
            print(f"shard {n} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
