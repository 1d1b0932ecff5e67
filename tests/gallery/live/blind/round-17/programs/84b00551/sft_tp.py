import argparse
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh

from model import LM, apply_tp
from packing import StepPlanner


def run(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(args.tp))
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (args.tp,), mesh_dim_names=("tp",))
    torch.manual_seed(7)
    model = apply_tp(LM(), mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, foreach=False)
    planner = StepPlanner(seed=3, samples=[4, 12, 24, 120, 300], capacity=args.capacity)
    gen = torch.Generator().manual_seed(21)

    for step in range(1, args.steps + 1):
        t0 = time.time()
        bins = planner.next_step()
        tokens = sum(map(sum, bins))
        total = 0.0
        for b in bins:
            ids = torch.randint(0, 800, (1, sum(b) + 1), generator=gen)
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="sum") / tokens
            loss.backward()
            total += loss.item()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if rank == 0:
            print(f"step {step:5d} | loss {total:.4f} | micro-batches {len(bins):3d} | tokens {tokens:6d} "
                  f"| {time.time() - t0:.2f}s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--tp", type=int, default=2)
    p.add_argument("--steps", type=int, default=20000)
    p.add_argument("--capacity", type=int, default=640)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(run, args=(args, port), nprocs=args.tp)
