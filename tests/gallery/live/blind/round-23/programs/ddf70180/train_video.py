import argparse
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from clip_reader import ClipDataset, build_manifest


class FramePool(nn.Module):
    def __init__(self, dim=32, classes=5):
        super().__init__()
        self.embed = nn.Linear(24 * 24, dim)
        self.temporal = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, classes)

    def forward(self, clips):
        h, _ = self.temporal(F.relu(self.embed(clips)))
        return self.head(h.mean(dim=1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=10)
    ap.add_argument("--batch-size", type=int, default=4)
    args = ap.parse_args()

    dist.init_process_group("gloo", timeout=timedelta(minutes=40))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    dataset = ClipDataset(build_manifest(world * 48), rank, world)
    loader = DataLoader(dataset, batch_size=args.batch_size, num_workers=0)
    model = DDP(FramePool())
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)

    step = 0
    for epoch in range(args.epochs):
        for clips, labels in loader:
            loss = F.cross_entropy(model(clips), labels)
            opt.zero_grad()
            loss.backward()
            opt.step()
            time.sleep(0.12)
            step += 1
            if rank == 0 and step % 10 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
    dataset.decoder.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
