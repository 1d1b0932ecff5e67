import argparse
import time

import torch
import torch.distributed as dist

from p2p import Neighbours
from schedule import OneFOneB
from stages import Stage


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=20000)
    p.add_argument("--micro-batch", type=int, default=8)
    p.add_argument("--seq", type=int, default=48)
    p.add_argument("--dim", type=int, default=96)
    p.add_argument("--vocab", type=int, default=512)
    p.add_argument("--rampup", default="4:0", help="micro-batches:from-step, comma separated")
    return p.parse_args()


def micro_batches_at(schedule, step):
    return [n for n, start in schedule if step >= start][-1]


def main():
    args = parse()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7 + rank)
    ramp = sorted((tuple(map(int, part.split(":"))) for part in args.rampup.split(",")), key=lambda p: p[1])
    ramp[0] = (ramp[0][0], 0)

    stage = Stage(rank, world, args.vocab, args.dim, 4, layers=2)
    optimizer = torch.optim.AdamW(stage.parameters(), lr=3e-4)
    comm = Neighbours((args.micro_batch, args.seq, args.dim))
    schedule = OneFOneB(stage, comm)
    data = torch.Generator().manual_seed(99)

    if rank == 0:
        print(f"{world} stages, ramp-up {ramp}", flush=True)
    mark = time.time()
    for step in range(args.steps):
        n = micro_batches_at(ramp, step)
        tokens = torch.randint(args.vocab, (n, args.micro_batch, args.seq + 1), generator=data)
        batch = [(t[:, :-1], t[:, 1:]) for t in tokens]
        loss = schedule.step(batch)
        torch.nn.utils.clip_grad_norm_(stage.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if comm.last and step % 10 == 0:
            print(f"step {step} micro-batches {n} loss {loss:.4f} {time.time() - mark:.2f}s", flush=True)
            mark = time.time()

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
