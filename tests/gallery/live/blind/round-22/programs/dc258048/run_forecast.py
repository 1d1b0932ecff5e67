import argparse
import os
import socket
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh

from diagnostics import Diagnostics
from model import Forecaster, parallelize

REPORT = {"mae", "rmse", "bias", "spread_hist", "rank_hist", "energy_spectrum", "acc"}


def fields(generator, batch=4, steps=12, channels=16):
    x = torch.randn(batch, steps, channels, generator=generator)
    return x, x.roll(1, dims=1) * 0.9 + 0.05


def sync_grads(model, group, size):
    for p in model.parameters():
        if p.grad is None:
            continue
        g = p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad
        dist.all_reduce(g, group=group)
        g.div_(size)


def worker(rank, world, port, eval_interval):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=timedelta(hours=1))
    mesh = init_device_mesh("cpu", (world // 2, 2), mesh_dim_names=("dp", "tp"))
    torch.manual_seed(0)
    model = parallelize(Forecaster(), mesh["tp"])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, foreach=False)
    diagnostics = Diagnostics(REPORT, Forecaster.supported_outputs, mesh["dp"])
    generator = torch.Generator().manual_seed(100 + mesh.get_local_rank("dp"))
    held_out = fields(torch.Generator().manual_seed(9))

    for step in range(1, 1000000):
        x, y = fields(generator)
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        sync_grads(model, mesh["dp"].get_group(), mesh["dp"].size())
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.15)
        if rank == 0 and step % 10 == 0:
            print(f"step {step:5d} mse {loss.item():.5f}", flush=True)
        if step % eval_interval == 0:
            products = diagnostics(model(held_out[0]), held_out[1])
            if rank == 0:
                print(f"eval {step}: rmse {products['rmse'].item():.4f}", flush=True)
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--eval-interval", type=int, default=60)
    args = parser.parse_args()
    mp.spawn(worker, args=(args.ranks, free_port(), args.eval_interval), nprocs=args.ranks)
