import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from p2p import P2P
from schedule import LoopedSchedule

DIM, MICRO, CLASSES = 384, 8, 100


def chunk(stage, num_stages):
    layers = []
    for _ in range(4):
        layers += [nn.Linear(DIM, DIM), nn.LayerNorm(DIM), nn.GELU()]
    if stage == num_stages - 1:
        layers.append(nn.Linear(DIM, CLASSES))
    return nn.Sequential(*layers)


def global_batch_size(samples, start, increment, rampup_samples, final=32):
    steps = max(1, (final - start) // increment)
    return min(final, start + increment * int(samples // (rampup_samples / steps)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rampup", type=int, nargs=3, default=(8, 8, 600))
    ap.add_argument("--train-samples", type=int, default=200000)
    args = ap.parse_args()
    start, inc, ramp = args.rampup
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    chunks = [chunk(c * world + rank, 2 * world) for c in range(2)]
    opt = torch.optim.AdamW([p for c in chunks for p in c.parameters()], lr=1e-4)
    sched = LoopedSchedule(chunks, rank, world, P2P(rank, world, (MICRO * 16, DIM)), F.cross_entropy)
    gen = torch.Generator().manual_seed(0)
    proto = torch.randn(CLASSES, DIM, generator=gen)
    samples, it, t0 = 0, 0, time.time()
    while samples < args.train_samples:
        gbs = global_batch_size(samples, start, inc, ramp * 3)
        n = gbs // MICRO
        ys = [torch.randint(0, CLASSES, (MICRO * 16,), generator=gen) for _ in range(n)]
        xs = [proto[y] + torch.randn(len(y), DIM, generator=gen) for y in ys]
        loss = sched.run(xs, ys)
        opt.step()
        opt.zero_grad()
        samples += gbs
        it += 1
        if it % 10 == 0 and rank == world - 1:
            print(f"iteration {it} | samples {samples} | global batch {gbs} | loss {loss:.3f} | "
                  f"{(time.time() - t0) * 100:.0f} ms", flush=True)
            t0 = time.time()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
