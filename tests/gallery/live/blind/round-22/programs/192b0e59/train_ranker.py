import argparse
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from session_feed import SessionFeed
from sparse_pipeline import ShardedTable, TrainPipelineSparse


def dense_compute():
    a = torch.randn(96, 96)
    for _ in range(3):
        a = torch.tanh(a @ a.T / 96)
    time.sleep(0.15)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1000)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    torch.manual_seed(7)
    tower = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    opt = torch.optim.Adagrad(tower.parameters(), lr=0.02)
    table = ShardedTable(mesh.get_group("shard"))
    feed = SessionFeed(rank, dist.get_world_size())
    pipe = TrainPipelineSparse(feed, table, tower, opt, mesh.get_group("replicate"))
    for step in range(args.steps):
        loss = pipe.progress(dense_compute)
        if rank == 0 and step % 10 == 0:
            print(f"[{time.strftime('%X')}] step {step} bce {loss:.4f} buffered {feed.ready.qsize()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
