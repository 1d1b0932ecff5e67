import argparse
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from reader import ClipFolder


def build_model():
    return nn.Sequential(
        nn.Conv2d(12, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 4)
    )


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--root", required=True)
    p.add_argument("--epochs", type=int, default=100)
    args = p.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(minutes=40))
    rank = dist.get_rank()
    torch.manual_seed(2)
    data = ClipFolder(args.root)
    sampler = DistributedSampler(data, shuffle=False)
    loader = DataLoader(data, batch_size=2, sampler=sampler, num_workers=1, persistent_workers=True)
    model = DDP(build_model())
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for it, (clips, labels) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(clips), labels)
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.2)
            if rank == 0 and it % 5 == 0:
                print(f"epoch {epoch} it {it}/{len(loader)} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
