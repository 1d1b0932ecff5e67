import argparse
import tempfile
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

from stages import Stage, batch


def loss_fn(out, target):
    return F.cross_entropy(out.flatten(0, 1), target.flatten())


def run_schedule(schedule, rank, world, x, y, train):
    losses = []
    call = schedule.step if train else schedule.eval
    if rank == 0:
        call(x)
    elif rank == world - 1:
        call(target=y, losses=losses)
    else:
        call()
    return losses


def export_stage(module, rank, folder, step):
    path = f"{folder}/stage{rank}.pt"
    torch.save({"step": step, "model": module.state_dict()}, path)
    state = torch.load(path)
    for i in range(12 if step // 40 % dist.get_world_size() == rank else 2):
        sum(v.float().sum() for v in state["model"].values())
        time.sleep(0.5)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--microbatches", type=int, default=6)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    module = Stage(rank, world)
    stage = PipelineStage(module, rank, world, torch.device("cpu"))
    schedule = Schedule1F1B(stage, args.microbatches, loss_fn=loss_fn)
    opt = torch.optim.AdamW(module.parameters(), lr=1e-3)
    folder = tempfile.mkdtemp()
    for step in range(1, 200000):
        x, y = batch(step, 2 * args.microbatches, 24)
        opt.zero_grad()
        losses = run_schedule(schedule, rank, world, x, y, True)
        opt.step()
        if losses and step % 5 == 0:
            print(f"step {step} loss {torch.stack(losses).mean().item():.3f}", flush=True)
        if step % 30 == 0:
            for i in range(20):
                x, y = batch(10**6 + i, 2 * args.microbatches, 24)
                run_schedule(schedule, rank, world, x, y, False)
            if rank == world - 1:
                print(f"step {step} validation done", flush=True)
        if step % 40 == 0:
            export_stage(module, rank, folder, step)
            dist.barrier()


if __name__ == "__main__":
    main()
