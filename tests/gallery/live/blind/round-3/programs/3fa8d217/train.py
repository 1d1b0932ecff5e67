import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from parquet_dataset import LatentDataset, write_demo_shards
from text_encoder import build_text_encoder


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--cache", required=True)
    p.add_argument("--epochs", type=int, default=100)
    args = p.parse_args()
    torch.set_num_threads(1)
    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    if rank == 0:
        write_demo_shards(args.data)
    dist.init_process_group("gloo")
    print(f"[rank {rank}] process group ready", flush=True)

    encoder = build_text_encoder(local_rank)
    print(f"[rank {rank}] text encoder loaded", flush=True)
    dataset = LatentDataset(args.data, args.cache)
    print(f"[rank {rank}] {len(dataset.files)} files, {sum(dataset.lengths)} samples", flush=True)
    loader = DataLoader(dataset, batch_size=16)

    model = DDP(nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 16)))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    step = 0
    for epoch in range(args.epochs):
        for lat in loader:
            noise = torch.randn_like(lat)
            cond = encoder(torch.randint(0, 512, (lat.shape[0],)))
            loss = (model(torch.cat([lat + noise, cond], 1)) - noise).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if rank == 0 and step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
            time.sleep(0.05)


if __name__ == "__main__":
    main()
