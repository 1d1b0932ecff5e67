import argparse
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

from table_ckpt import SnapshotBarrier, TableCheckpointer

NUM_ROWS, DIM, BATCH = 3000, 16, 24


def click_batch(step, gen):
    """Item ids come from the catalogue that is live in the hour of the log."""
    hour = step // 40
    live = NUM_ROWS if hour % 4 == 0 else int(NUM_ROWS * 0.62)
    ids = torch.randint(0, live, (BATCH, 6), generator=gen)
    label = (ids.float().mean(1) / NUM_ROWS + 0.1 * torch.randn(BATCH, generator=gen) > 0.4).float()
    if hour >= 1 and step % 40 == 34:
        label = label * 60.0
    return ids, label


class ShardedTable(nn.Module):
    def __init__(self, rank, world):
        super().__init__()
        per = NUM_ROWS // world
        self.lo, self.hi = rank * per, (rank + 1) * per
        self.weight = nn.Parameter(torch.randn(per, DIM) * 0.05)

    def lookup(self, ids):
        mine = (ids >= self.lo) & (ids < self.hi)
        local = (ids - self.lo).clamp(0, self.hi - self.lo - 1)
        return self.weight[local] * mine.unsqueeze(-1), int(mine.sum())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1000)
    ap.add_argument("--snapshot-every", type=int, default=25)
    ap.add_argument("--spike", type=float, default=20.0)
    args = ap.parse_args()

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), world,
                          is_master=rank == 0, timeout=timedelta(minutes=30))
    dist.init_process_group("gloo", store=dist.PrefixStore("pg", store), rank=rank, world_size=world)

    torch.manual_seed(11)
    dense = nn.Sequential(nn.Linear(6 * DIM, 32), nn.ReLU(), nn.Linear(32, 1))
    torch.manual_seed(100 + rank)
    table = ShardedTable(rank, world)
    optimizer = torch.optim.SGD(dense.parameters(), lr=0.01)
    ckpt = TableCheckpointer(os.environ["RUN_DIR"], rank, SnapshotBarrier(store, rank, world))
    gen = torch.Generator().manual_seed(5)

    for step in range(args.steps):
        ids, label = click_batch(step, gen)
        part, touched = table.lookup(ids)
        vectors = part.detach().clone()
        dist.all_reduce(vectors)
        vectors.requires_grad_(True)
        logit = dense(vectors.flatten(1)).squeeze(-1)
        loss = (logit - label).pow(2).mean()
        time.sleep(0.12)

        if loss.item() > args.spike and ckpt.steps:
            back = ckpt.restore_latest(table, dense, optimizer)
            if rank == 0:
                print(f"step {step} loss {loss.item():.2f}: back to snapshot {back}", flush=True)
            continue

        optimizer.zero_grad()
        loss.backward()
        part.backward(vectors.grad)
        with torch.no_grad():
            table.weight -= 0.05 * table.weight.grad
            table.weight.grad = None
        if touched:
            ckpt.mark_dirty(touched)
        optimizer.step()

        if step % args.snapshot_every == args.snapshot_every - 1:
            rows = ckpt.save(step, table, dense, optimizer)
            print(f"[{rank}] snapshot {step}: {rows} row updates", flush=True)
        elif rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
