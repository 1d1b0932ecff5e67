import argparse
import os
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from checkpointing import AsyncCheckpointer
from model import TinyLM
from stream import loaders


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    total = torch.zeros(2)
    for window in loader:
        logits = model(window[:, :-1])
        time.sleep(0.8)
        total += torch.tensor([F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten()).item(), 1.0])
    dist.all_reduce(total)
    model.train()
    return (total[0] / total[1]).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--save-every", type=int, default=60)
    parser.add_argument("--eval-every", type=int, default=100)
    args = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank = dist.get_rank()
    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = TinyLM()
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    box = [tempfile.mkdtemp(prefix="lm-run-") if rank == 0 else None]
    dist.broadcast_object_list(box)
    checkpointer = AsyncCheckpointer(os.path.join(box[0], "local"), os.path.join(box[0], "archive"))
    train_loader, val_loader = loaders(rank)
    began = time.time()
    for step, window in enumerate(train_loader, 1):
        loss = F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
        time.sleep(0.1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 10 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f} elapsed {time.time() - began:.1f}s", flush=True)
        if step % args.save_every == 0:
            path = checkpointer.save(step, model, optimizer)
            if rank == 0:
                print(f"saving {path}", flush=True)
        if step % args.eval_every == 0:
            value = evaluate(model, val_loader)
            if rank == 0:
                print(f"step {step} val_loss {value:.4f}", flush=True)
        if step == args.steps:
            break
    checkpointer.wait()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
