import argparse
import multiprocessing
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from cached import RuntimeCacheDataset


def build_net():
    return nn.Sequential(
        nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv3d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv3d(8, 1, 1)
    )


def main_worker(rank, args, port, train_ds):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=args.gpus)
    torch.manual_seed(rank)
    model = DDP(build_net())
    optim = torch.optim.Adam(model.parameters(), lr=1e-3)
    sampler = DistributedSampler(train_ds, seed=17)
    loader = DataLoader(train_ds, batch_size=args.batch_size, sampler=sampler, drop_last=True)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        start = time.time()
        for image, label in loader:
            loss = F.binary_cross_entropy_with_logits(model(image), label)
            loss.backward()
            optim.step()
            optim.zero_grad()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} {(time.time() - start) / len(loader):.3f} s/step")
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--volumes", type=int, default=40)
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--crop", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=6)
    args = parser.parse_args()

    manager = multiprocessing.Manager()
    cache = manager.list([None] * args.volumes)
    train_ds = RuntimeCacheDataset(args.volumes, args.size, args.crop, cache)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(main_worker, args=(args, port, train_ds), nprocs=args.gpus)


if __name__ == "__main__":
    main()
