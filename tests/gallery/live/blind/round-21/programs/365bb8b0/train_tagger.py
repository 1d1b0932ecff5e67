import argparse
import datetime
import os
import tempfile
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from beacon import start_beacon
from shards import loader, stage


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--budget", type=float, default=3600.0, help="seconds of training")
    parser.add_argument("--step-cost", type=float, default=0.2)
    args = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(hours=1))
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)))
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    start_beacon(rank)

    urls = stage(rank, world_size)
    started = time.monotonic()
    print(f"[rank {rank}] staged {len(urls)} shards", flush=True)
    step = 0
    for x, y in loader(urls, batch_size=16):
        loss = nn.functional.cross_entropy(model(x), torch.as_tensor(y))
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(args.step_cost)
        step += 1
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if time.monotonic() - started > args.budget:
            break

    if rank == 0:
        folder = tempfile.mkdtemp(prefix="tagger_")
        torch.save(model.module.state_dict(), os.path.join(folder, "final.pt"))
    print(f"[rank {rank}] finished after {step} steps", flush=True)


if __name__ == "__main__":
    main()
