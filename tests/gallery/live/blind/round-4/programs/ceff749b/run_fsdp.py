import argparse
import ctypes
import signal
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from titan.ckpt import Checkpointer


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--interval", type=int, default=50)
    args = ap.parse_args()
    ctypes.CDLL("libc.so.6").prctl(1, signal.SIGKILL)
    dist.init_process_group("gloo")
    rank = dist.get_rank()

    def log(msg):
        if rank == 0:
            print(f"{time.strftime('%T')} {msg}", flush=True)

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(600, 96), *[nn.Sequential(nn.LayerNorm(96), nn.Linear(96, 384), nn.GELU(),
                          nn.Linear(384, 96)) for _ in range(3)], nn.Linear(96, 600))
    for m in model:
        fully_shard(m, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ck = Checkpointer("checkpoints", log)
    g = torch.Generator().manual_seed(rank)
    for step in range(1, 1_000_000):
        ids = torch.randint(0, 600, (8, 64), generator=g)
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ((ids * 7 + 1) % 600).flatten())
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 10 == 0:
            log(f"step {step} loss {loss.item():.4f}")
        if step % args.interval == 0:
            ck.save(step, model, opt)


if __name__ == "__main__":
    main()
