import argparse
import logging
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from ops.functional import neighbour_count, voxelize

log = logging.getLogger("pointset")


class PointVoxelNet(nn.Module):
    def __init__(self, width=32, resolution=8):
        super().__init__()
        self.resolution = resolution
        self.embed = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, width))
        self.conv = nn.Conv3d(width, width, 3, padding=1)
        self.head = nn.Linear(width, 1)

    def forward(self, coords):
        density = neighbour_count(coords, 0.1).unsqueeze(1)
        feats = self.embed(torch.cat([coords, density], dim=1))
        grid = voxelize(feats, coords, self.resolution)
        r = self.resolution
        grid = grid.t().reshape(1, -1, r, r, r)
        return self.head(self.conv(grid).relu().mean(dim=(2, 3, 4)))


def make_sample(gen):
    scale = torch.rand(1, generator=gen)
    coords = torch.rand(384, 3, generator=gen) * (0.3 + 0.7 * scale)
    return coords, scale


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=40)
    ap.add_argument("--steps-per-epoch", type=int, default=200)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"[%(asctime)s rank{rank}] %(message)s")
    torch.set_num_threads(1)
    torch.manual_seed(0)

    model = DDP(PointVoxelNet())
    optim = torch.optim.AdamW(model.parameters(), lr=2e-3)
    gen = torch.Generator().manual_seed(100 + rank)
    log.info("model has %d parameters", sum(p.numel() for p in model.parameters()))

    for epoch in range(args.epochs):
        start, running = time.time(), 0.0
        for step in range(args.steps_per_epoch):
            coords, scale = make_sample(gen)
            loss = (model(coords).squeeze() - scale.squeeze()).pow(2)
            optim.zero_grad()
            loss.backward()
            optim.step()
            running += loss.item()
            if rank == 0 and step % 50 == 0:
                log.info("epoch %d step %d loss %.4f", epoch, step, loss.item())
        total = torch.tensor([running / args.steps_per_epoch])
        dist.all_reduce(total)
        if rank == 0:
            log.info("epoch %d mean loss %.4f (%.1fs)", epoch, total.item() / dist.get_world_size(), time.time() - start)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
