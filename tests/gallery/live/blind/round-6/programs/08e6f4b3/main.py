import argparse
import time

import torch
import torch.distributed as dist
from torch import nn

from clicks import ClickLog
from pipeline import TrainPipeline
from sharded import ShardedTable


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--days", type=int, default=7)
    p.add_argument("--table-rows", type=int, default=1000)
    p.add_argument("--dim", type=int, default=16)
    a = p.parse_args()
    dist.init_process_group("gloo")
    r, w = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    dense = nn.Sequential(nn.Linear(a.dim, 64), nn.ReLU(), nn.Linear(64, 1))
    table = ShardedTable(a.table_rows, a.dim, r, w)
    opt = torch.optim.Adagrad(dense.parameters(), 0.01)
    pipe = TrainPipeline(table, dense, opt, w)
    log = ClickLog(r, w, a.table_rows)
    for d in range(a.days):
        it, n, tot = iter(log.day(d)), 0, 0.0
        while True:
            try:
                tot += pipe.progress(it)
            except StopIteration:
                break
            n += 1
            time.sleep(0.08)
            if r == 0 and n % 10 == 0:
                print(f"day {d} batch {n} logloss {tot / n:.4f}", flush=True)
        dist.barrier()
        if r == 0:
            print(f"day {d} finished", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
