import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

from dataset import SpiralSequences
from net import SeqNet


def worker(rank, args):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{os.environ['MASTER_PORT']}",
                            rank=rank, world_size=args.gpus)
    print(f"[{rank}] init done", flush=True)
    from ops.scan import load_scan
    scan = load_scan(verbose=rank == 0)
    model = DDP(SeqNet(32, scan))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    ds = SpiralSequences(rank)
    for it in range(args.iters):
        x, y = ds.batch(args.batch_size)
        loss = torch.nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and it % 20 == 0:
            print(f"iter {it:6d}  loss {loss.item():.5f}", flush=True)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--gpus", type=int, default=2)
    ap.add_argument("--batch-size", type=int, default=16)
    ap.add_argument("--iters", type=int, default=200000)
    args = ap.parse_args()
    mp.spawn(worker, args=(args,), nprocs=args.gpus)
