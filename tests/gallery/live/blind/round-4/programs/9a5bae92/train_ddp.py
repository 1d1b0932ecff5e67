import argparse
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

from batching import BucketedBatches
from modeling import EmbedHeadModel


def run(rank, args):
    dist.init_process_group("gloo", rank=rank, world_size=args.world)
    torch.manual_seed(0)
    model = EmbedHeadModel(1500, 64, args.layers)
    if args.compile:
        torch._dynamo.config.recompile_limit = 512
        model = torch.compile(model, backend=args.backend, dynamic=False)
    model = DDP(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    t0 = time.time()
    for step, (ids, labels) in enumerate(BucketedBatches(rank)):
        loss = model(ids, labels)
        loss.backward()
        opt.step()
        opt.zero_grad()
        if rank == 0:
            print(f"step {step:5d} | len {ids.shape[1]:4d} | loss {loss.item():.4f} | {time.time() - t0:.2f}s", flush=True)
            t0 = time.time()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--world", type=int, default=2)
    ap.add_argument("--layers", type=int, default=4)
    ap.add_argument("--compile", action="store_true")
    ap.add_argument("--backend", default="inductor")
    mp.spawn(run, args=(ap.parse_args(),), nprocs=2)
