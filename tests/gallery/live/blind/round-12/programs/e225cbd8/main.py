import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn

from p2p import Neighbours
from schedule import OneFOneB

VOCAB, DIM, SEQ = 256, 96, 32


def build_stage(rank, world, layers=2):
    mods = [nn.Embedding(VOCAB, DIM)] if rank == 0 else []
    mods += [nn.TransformerEncoderLayer(DIM, 4, 2 * DIM, dropout=0.0, batch_first=True) for _ in range(layers)]
    if rank == world - 1:
        mods.append(nn.Linear(DIM, VOCAB))
    return nn.Sequential(*mods)


def global_batch_at(step, final, spec):
    start, inc, every = (int(v) for v in spec.split(","))
    return min(final, start + inc * (step // every))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--global-batch", type=int, default=16)
    ap.add_argument("--micro-batch", type=int, default=4)
    ap.add_argument("--rampup", default="4,4,100")
    ap.add_argument("--steps", type=int, default=5000)
    args = ap.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    stage = build_stage(rank, world)
    opt = torch.optim.AdamW(stage.parameters(), lr=3e-4)
    sched = OneFOneB(stage, Neighbours((args.micro_batch, SEQ, DIM)))
    data = torch.Generator().manual_seed(7)
    if rank == world - 1:
        print(f"pipeline of {world} stages, training begins", flush=True)

    t0, seen = time.time(), 0
    for step in range(args.steps):
        gbs = global_batch_at(step, args.global_batch, args.rampup)
        batches = []
        for _ in range(gbs // args.micro_batch):
            t = torch.randint(0, VOCAB, (args.micro_batch, SEQ + 1), generator=data)
            batches.append((t[:, :-1], t[:, 1:]))
        opt.zero_grad()
        loss = sched.run(batches)
        nn.utils.clip_grad_norm_(stage.parameters(), 1.0)
        opt.step()
        seen += gbs
        if rank == world - 1 and step % 10 == 0:
            print(f"iteration {step} gbs {gbs} consumed {seen} loss {loss:.4f} elapsed {time.time() - t0:.1f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
