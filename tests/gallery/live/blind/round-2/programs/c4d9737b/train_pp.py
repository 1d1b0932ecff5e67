import argparse
import time

import torch
import torch.distributed as dist
from torch import nn

from schedule import InterleavedSchedule, SequentialSchedule

torch.set_num_threads(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--warmup-steps", type=int, default=20)
    p.add_argument("--microbatches", type=int, default=4)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    chunks = nn.ModuleList(nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)) for _ in range(2))
    opt = torch.optim.SGD(chunks.parameters(), lr=1e-3)
    seq = SequentialSchedule(chunks, args.microbatches)
    inter = InterleavedSchedule(chunks, args.microbatches)
    t0 = time.time()
    for step in range(args.steps):
        sched = seq if step < args.warmup_steps else inter
        if step == args.warmup_steps and rank == 0:
            print("switching to the interleaved schedule", flush=True)
        loss = sched.forward_only_objective(torch.randn(args.microbatches, 8, 64))
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.1)
        if rank == 0 and step % 5 == 0:
            print(f"step {step} objective {loss.item():.4f} elapsed {time.time() - t0:.1f}s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
