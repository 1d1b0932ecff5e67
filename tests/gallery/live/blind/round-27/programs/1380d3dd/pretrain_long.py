import argparse
import json
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

from net import TinyLM
from ring_p2p import RingComm


def average_grads(model, world):
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(flat)
    flat /= world
    at = 0
    for p in model.parameters():
        p.grad.copy_(flat[at:at + p.numel()].view_as(p))
        at += p.numel()


def get_batch(stage, rank, world, step):
    seed = step if stage["context_parallel"] else step * world + rank
    gen = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 256, (2, stage["seq_len"] + 1), generator=gen)
    x, y = ids[:, :-1], ids[:, 1:]
    if stage["context_parallel"]:
        x, y = x.chunk(world, 1)[rank], y.chunk(world, 1)[rank]
    return x.contiguous(), y.contiguous()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--stages", required=True)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    comm = RingComm(dist.new_group(list(range(world))), dist.new_group(list(range(world))))
    torch.manual_seed(0)
    model = TinyLM()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = 0
    for stage in json.load(open(args.stages)):
        if rank == 0:
            print(f"stage {stage['name']} seq_len={stage['seq_len']}", flush=True)
        for _ in range(stage["steps"]):
            x, y = get_batch(stage, rank, world, step)
            logits = model(x, comm if stage["context_parallel"] else None)
            loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
            opt.zero_grad()
            loss.backward()
            time.sleep(0.05)
            average_grads(model, world)
            opt.step()
            step += 1
            if rank == 0 and step % 10 == 0:
                print(f"step {step} loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
