import argparse
import logging

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from checkpointer import DistributedCheckpointer
from trainer import Trainer


def make_split(n, seed, noise):
    g = torch.Generator().manual_seed(seed)
    proto = torch.randn(16, 256, generator=torch.Generator().manual_seed(5))
    y = torch.randint(0, 16, (n,), generator=g)
    x = proto[y] * 0.35 + torch.randn(n, 256, generator=g)
    flip = torch.rand(n, generator=g) < noise
    y[flip] = torch.randint(0, 16, (int(flip.sum()),), generator=g)
    return x, y


def make_val(rank, world):
    sizes = [384] * world
    noise = [0.02, 0.05, 0.60, 0.03]
    return TensorDataset(*make_split(sizes[rank], 200 + rank, noise[rank % 4]))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--ckpt-dir", required=True)
    ap.add_argument("--epochs", type=int, default=5000)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s r{rank} %(message)s")
    path = [args.ckpt_dir]
    dist.broadcast_object_list(path, src=0)
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(256, 384), nn.GELU(), nn.LayerNorm(384), nn.Linear(384, 384), nn.GELU(), nn.Linear(384, 16))
    model = DistributedDataParallel(net)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01)
    train = TensorDataset(*make_split(4096, 100, 0.05))
    loader = DataLoader(train, 32, sampler=DistributedSampler(train, world, rank), drop_last=True)
    val = DataLoader(make_val(rank, world), 64)
    Trainer(model, opt, loader, val, DistributedCheckpointer(path[0]), rank).run(args.epochs)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
