import shutil
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from evaluation import Evaluator
from net import ConvNet, synthetic_digits


def setup(rank, args):
    torch.set_num_threads(1)
    torch.manual_seed(100 + rank)
    dist.init_process_group(
        "gloo",
        init_method=args.init_method,
        rank=rank,
        world_size=args.world_size,
        timeout=timedelta(hours=3),
    )
    dist.barrier()
    if rank == 0:
        shutil.rmtree(args.init_dir, ignore_errors=True)


def run(rank, args):
    setup(rank, args)
    model = DDP(ConvNet())
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    evaluator = None
    for epoch in range(args.epochs):
        model.train()
        t0 = time.time()
        for step in range(args.steps_per_epoch):
            x, y = synthetic_digits(args.batch_size)
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if rank == 0 and step % 40 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
        if rank == 0:
            print(f"epoch {epoch} took {time.time() - t0:.1f}s", flush=True)
        if epoch + 1 >= args.eval_from:
            if evaluator is None:
                evaluator = Evaluator(args.world_size)
            acc = evaluator(model)
            if rank == 0:
                print(f"epoch {epoch} val acc {acc:.3f}", flush=True)
    dist.destroy_process_group()
