import os
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

from stages import FirstStage, LastStage

DIM, TOKENS, PATCH, CLASSES = 64, 36, 48, 10
BATCH, MICRO = 48, 16


def make_batch(step, centers):
    g = torch.Generator().manual_seed(step)
    y = torch.randint(0, CLASSES, (BATCH,), generator=g)
    return centers[y].unsqueeze(1) + 2 * torch.randn(BATCH, TOKENS, PATCH, generator=g), y


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    save_group = dist.new_group(backend="gloo")
    torch.manual_seed(5 + rank)
    model = FirstStage(DIM, TOKENS, PATCH, 4) if rank == 0 else LastStage(DIM, TOKENS, CLASSES, 4)
    stage = PipelineStage(model, rank, 2, torch.device("cpu"))
    sched = Schedule1F1B(stage, MICRO, loss_fn=F.cross_entropy)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    centers = torch.randn(CLASSES, PATCH, generator=torch.Generator().manual_seed(1))
    pending, t0 = None, time.time()

    for step in range(1, 200001):
        x, y = make_batch(step, centers)
        losses = []
        if rank == 0:
            sched.step(x)
        else:
            sched.step(target=y, losses=losses)
        opt.step()
        opt.zero_grad()
        if rank == 1 and step % 10 == 0:
            print(f"step {step} loss {torch.stack(losses).mean().item():.4f} {(time.time() - t0) / 10:.2f} s/step", flush=True)
            t0 = time.time()
        if step % 50 == 0:
            if pending is not None:
                pending.result()
            state = {f"stage{rank}": {"model": model.state_dict(), "step": step}}
            pending = dcp.async_save(state, checkpoint_id=os.path.join(os.environ["RUN_DIR"], f"step{step % 100}"), process_group=save_group)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
