import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from model import TinyGPT


def batches(rank, batch, ctx):
    gen = torch.Generator().manual_seed(31 + rank)
    while True:
        start = torch.randint(0, 256, (batch, 1), generator=gen)
        stride = torch.randint(1, 7, (batch, 1), generator=gen)
        seq = (start + stride * torch.arange(ctx + 1)) % 256
        yield seq[:, :-1], seq[:, 1:]


def worker(rank, args):
    os.environ["RANK"], os.environ["LOCAL_RANK"] = str(rank), str(rank)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=args.world_size)
    mesh = init_device_mesh("cpu", (args.world_size,))
    torch.manual_seed(0)
    model = TinyGPT()
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optim = torch.optim.AdamW(model.parameters(), lr=1e-3)

    stream = batches(rank, args.batch, 48)
    mark = time.time()
    for step in range(args.steps):
        ids, target = next(stream)
        loss = F.cross_entropy(model(ids).flatten(0, 1), target.flatten())
        loss.backward()
        optim.step()
        optim.zero_grad()
        if step == 5:
            with open(os.path.join(args.run_dir, f"rank{rank}.pid"), "w") as f:
                f.write(str(os.getpid()))
        if step % 20 == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            if rank == 0:
                print(f"step {step:5d} loss {mean.item() / args.world_size:.3f} "
                      f"{(time.time() - mark) / 20:.3f} s/it", flush=True)
                mark = time.time()
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--run-dir", required=True)
    ap.add_argument("--world-size", type=int, default=4)
    ap.add_argument("--steps", type=int, default=60000)
    ap.add_argument("--batch", type=int, default=4)
    args = ap.parse_args()
    mp.spawn(worker, args=(args,), nprocs=args.world_size)
