import argparse
import math
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from restart import RestartFiles


class Emulator(nn.Module):
    def __init__(self, channels=4, width=16):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1), nn.GELU(),
            nn.Conv2d(width, width, 3, padding=1), nn.GELU(),
            nn.Conv2d(width, channels, 3, padding=1),
        )

    def forward(self, x):
        return x + self.net(x)


def zonal_means(field):
    """Running statistics by latitude for the log, kept in plain Python floats."""
    stats = []
    for channel in field.tolist():
        for row in channel:
            mean = math.fsum(row) / len(row)
            stats.append((mean, math.sqrt(math.fsum((v - mean) ** 2 for v in row) / len(row))))
    return stats


def reduce_gradients(model, world):
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(flat)
    flat /= world
    offset = 0
    for p in model.parameters():
        p.grad.copy_(flat[offset : offset + p.numel()].view_as(p))
        offset += p.numel()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", type=int, default=50000)
    args = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(2)
    model = Emulator()
    optim = torch.optim.Adam(model.parameters(), lr=1e-3)
    restart = RestartFiles(args.out, rank, model, optim)
    gen = torch.Generator().manual_seed(90 + rank)
    start = time.time()
    for step in range(1, args.steps + 1):
        restart.step = step
        state = torch.randn(4, 4, 32, 64, generator=gen)
        target = torch.roll(state, 1, dims=-1) * 0.98
        loss = F.mse_loss(model(state), target)
        loss.backward()
        if rank == 0:
            stats = zonal_means(state[:3].flatten(0, 1))
        reduce_gradients(model, world)
        optim.step()
        optim.zero_grad()
        if rank == 0 and step % 25 == 0:
            spread = sum(s for _, s in stats) / len(stats)
            print(f"step {step} loss {loss.item():.4f} spread {spread:.3f} {step / (time.time() - start):.1f} it/s")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
