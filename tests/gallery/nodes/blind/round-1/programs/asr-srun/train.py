import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from file_cache import FileCache


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", required=True)
    args = parser.parse_args()
    os.makedirs(args.cache, exist_ok=True)
    rank, world = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model = DDP(nn.Sequential(nn.Conv1d(40, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 18, 30)))
    optimizer = torch.optim.Adam(model.parameters())
    cache = FileCache(args.cache)
    print(f"rank {rank}: {sum(p.numel() for p in model.parameters())} parameters", flush=True)
    for epoch in range(100):
        for part in range(20):
            shard = torch.load(cache.get(f"e{epoch:02d}-p{part:02d}-r{rank}.pt"))
            for frames in shard["frames"].split(8):
                loss = model(frames).logsumexp(-1).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(f"rank {rank}: epoch {epoch} part {part} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
