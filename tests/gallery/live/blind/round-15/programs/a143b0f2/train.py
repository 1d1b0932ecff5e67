import argparse
import functools
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

import cpu_compat
from corpus import VOCAB, DocumentShard, collate
from model import LM


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=10000)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--context", type=int, default=64)
    p.add_argument("--log-every", type=int, default=20)
    p.add_argument("--backend", default="aot_eager")
    return p.parse_args()


def main():
    args = parse()
    torch.set_num_threads(1)
    cpu_compat.install()
    dist.init_process_group("cpu:gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)

    model = DDP(LM(VOCAB, context=args.context))
    step_model = torch.compile(model, backend=args.backend)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)

    loader = iter(DataLoader(DocumentShard(rank, world, args.context), batch_size=args.batch,
                             collate_fn=functools.partial(collate, context=args.context)))
    t0 = time.time()
    for step in range(1, args.steps + 1):
        batch = next(loader)
        logits = step_model(batch["input_ids"], batch["attention_mask"])
        loss = F.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        if step % args.log_every == 0 and rank == 0:
            dt = (time.time() - t0) / args.log_every
            print(f"step {step:6d} loss {loss.item():.4f} {dt * 1e3:.1f} ms/step", flush=True)
            t0 = time.time()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
