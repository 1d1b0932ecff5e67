import argparse
import os
import random
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
import torchmetrics
from torch.nn.parallel import DistributedDataParallel as DDP

from data import ShardIndex, endless


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(5),
        nn.Flatten(), nn.Linear(1200, 5),
    )


def validate(model, stream, metric, batches):
    model.eval()
    with torch.no_grad():
        for _ in range(batches):
            x, y = next(stream)
            metric.update(model(x), y)
    value = metric.compute().item()
    metric.reset()
    model.train()
    return value


def run(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank),
                      LOCAL_RANK=str(rank), WORLD_SIZE=str(args.world_size))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = DDP(build_model())
    optim = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    index = ShardIndex(args.data, rank, args.world_size)
    train, held = endless(index, 16, 10 + rank), endless(index, 16, 900 + rank)
    metric = torchmetrics.Accuracy(task="multiclass", num_classes=5)
    rng = random.Random(40 + rank)
    mark = time.time()
    for step in range(1, args.steps + 1):
        x, y = next(train)
        if rng.random() < 0.3:
            x = torch.cat([x, x.flip(-1)])
            y = torch.cat([y, y])
        loss = F.cross_entropy(model(x), y)
        optim.zero_grad()
        loss.backward()
        optim.step()
        if rank == 0 and step % 50 == 0:
            print(f"step {step} loss {loss.item():.3f} shards {len(index.snapshot())} {time.time() - mark:.1f}s", flush=True)
            mark = time.time()
        if step % args.eval_every == 0:
            acc = validate(model.module, held, metric, 200)
            if rank == 0:
                os.makedirs(".ckpt", exist_ok=True)
                torch.save({"step": step, "model": model.module.state_dict()}, ".ckpt/last.tmp")
                os.replace(".ckpt/last.tmp", ".ckpt/last.pt")
                print(f"step {step} accuracy {acc:.3f}", flush=True)
            dist.barrier()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", required=True)
    ap.add_argument("--world-size", type=int, default=3)
    ap.add_argument("--steps", type=int, default=200000)
    ap.add_argument("--eval-every", type=int, default=250)
    args = ap.parse_args()
    ctx, port = mp.get_context("spawn"), free_port()
    procs = [ctx.Process(target=run, args=(r, args, port), name=f"rank{r}") for r in range(args.world_size)]
    for p in procs:
        p.start()
    for p in procs:
        p.join()
