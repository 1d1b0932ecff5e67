import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

from partition import build_stage, split_layers

VOCAB, DIM, LAYERS, PP = 32000, 128, 6, 3
SEQ, MICRO, N_MICRO = 32, 2, 6


def loss_fn(logits, target):
    return F.cross_entropy(logits.flatten(0, 1), target.flatten())


def batches(seed=3):
    g = torch.Generator().manual_seed(seed)
    while True:
        start = torch.randint(0, VOCAB, (MICRO * N_MICRO, 1), generator=g)
        yield (start + torch.arange(SEQ + 1)) % VOCAB


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    module = build_stage(rank, PP, VOCAB, DIM, LAYERS)
    stage = PipelineStage(module, rank, PP, torch.device("cpu"))
    sched = Schedule1F1B(stage, N_MICRO, loss_fn=loss_fn)
    opt = torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)
    if rank == 0:
        print("layers per stage", split_layers(LAYERS, PP), flush=True)
    t0, tokens = time.time(), 0
    for step, batch in enumerate(batches(), 1):
        x, y = batch[:, :-1], batch[:, 1:]
        if rank == 0:
            sched.step(x)
        elif rank == PP - 1:
            losses = []
            sched.step(target=y, losses=losses)
        else:
            sched.step()
        opt.step()
        opt.zero_grad()
        tokens += x.numel()
        if step % 10 == 0:
            if rank == PP - 1:
                loss = sum(l.item() for l in losses) / len(losses)
                print(f"step {step} loss {loss:.3f} tok/s {tokens / (time.time() - t0):.0f}", flush=True)
            t0, tokens = time.time(), 0
        if step == 20000:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
