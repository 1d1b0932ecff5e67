import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B

from metrics import MetricsWriter
from stages import CLASSES, DIM, build

MICRO, N_MICRO, VIRTUAL = 32, 4, 2


def batches(seed):
    g = torch.Generator().manual_seed(seed)
    proto = torch.randn(CLASSES, DIM, generator=torch.Generator().manual_seed(4))
    while True:
        y = torch.randint(0, CLASSES, (MICRO * N_MICRO,), generator=g)
        yield proto[y] + 4.0 * torch.randn(len(y), DIM, generator=g), y


def run_eval(sched, rank, world, iters=6):
    total = torch.zeros(1)
    data = batches(99)
    for _ in range(iters):
        x, y = next(data)
        losses = []
        if rank == 0:
            sched.eval(x)
        else:
            sched.eval(target=y, losses=losses)
            total += torch.stack([l.detach() for l in losses]).mean() / iters
    dist.broadcast(total, src=world - 1)
    return total.item()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    n = world * VIRTUAL
    mods = [build(rank + v * world, n) for v in range(VIRTUAL)]
    stages = [PipelineStage(m, rank + v * world, n, torch.device("cpu")) for v, m in enumerate(mods)]
    sched = ScheduleInterleaved1F1B(stages, N_MICRO, loss_fn=F.cross_entropy)
    opt = torch.optim.AdamW([p for m in mods for p in m.parameters()], lr=3e-4)
    writer = MetricsWriter(rank)
    data, t0 = batches(1), time.time()
    for step in range(1, 40001):
        x, y = next(data)
        losses = []
        if rank == 0:
            sched.step(x)
        else:
            sched.step(target=y, losses=losses)
        opt.step()
        opt.zero_grad()
        writer.log(step=step, sec=time.time() - t0)
        if losses and step % 20 == 0:
            print(f"step {step} loss {torch.stack(losses).mean().item():.4f} {(time.time() - t0):.3f}s", flush=True)
        t0 = time.time()
        if step % 150 == 0:
            val = run_eval(sched, rank, world)
            if rank == 0:
                print(f"step {step} eval {val:.4f}", flush=True)
            t0 = time.time()
    writer.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
