import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

from feed import Feed
from parts import Part

BATCH, MICRO, STEPS = 32, 4, 100000


def top1(schedule, feed, rank, last, rounds=12):
    hits = torch.zeros(1)
    for _ in range(rounds):
        x, y = feed.next()
        with torch.no_grad():
            if rank == 0:
                schedule.eval(x)
            elif rank == last:
                hits += (schedule.eval(target=y).argmax(1) == y).sum()
            else:
                schedule.eval()
    dist.broadcast(hits, src=last)
    return hits.item() / (rounds * BATCH)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    last = world - 1
    torch.manual_seed(40 + rank)
    part = Part(rank, world)
    stage = PipelineStage(part, rank, world, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=MICRO, loss_fn=F.cross_entropy)
    optimizer = torch.optim.AdamW(part.parameters(), lr=5e-4)
    feed = Feed(BATCH)
    folder = f"/tmp/pp-parts-{os.environ['MASTER_PORT']}"
    os.makedirs(folder, exist_ok=True)

    mark = time.time()
    for step in range(1, STEPS + 1):
        x, y = feed.next()
        losses = []
        if rank == 0:
            schedule.step(x)
        elif rank == last:
            schedule.step(target=y, losses=losses)
        else:
            schedule.step()
        torch.nn.utils.clip_grad_norm_(part.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 10 == 0 and rank == last:
            print(f"step {step} loss {torch.stack(losses).mean().item():.4f} {time.time() - mark:.2f}s", flush=True)
            mark = time.time()
        if step % 100 == 0:
            acc = top1(schedule, feed, rank, last)
            torch.save(part.state_dict(), f"{folder}/part-{rank}.pt")
            dist.barrier()
            if rank == last:
                print(f"step {step} top-1 {acc:.3f}, parts saved", flush=True)


if __name__ == "__main__":
    main()
