"""Per-rank snapshots of the row-sharded embedding table."""
import os
from datetime import timedelta

import torch


class SnapshotBarrier:
    """Two-phase barrier on the key-value store, usable without a process group."""

    def __init__(self, store, rank, world_size, timeout=timedelta(hours=1)):
        self.store = store
        self.rank = rank
        self.world_size = world_size
        self.timeout = timeout

    def sync(self, tag):
        if self.store.add(f"snap/{tag}/arrived", 1) == self.world_size:
            self.store.set(f"snap/{tag}/released", b"1")
        self.store.wait([f"snap/{tag}/released"], self.timeout)


class TableCheckpointer:
    def __init__(self, root, rank, barrier, keep=3):
        self.root = root
        self.rank = rank
        self.barrier = barrier
        self.keep = keep
        self.dirty_rows = 0
        self.steps = []
        self.restores = 0
        os.makedirs(root, exist_ok=True)

    def shard_path(self, step):
        return os.path.join(self.root, f"table-{step:06d}.rank{self.rank}.pt")

    def mark_dirty(self, n):
        self.dirty_rows += n

    def save(self, step, table, dense, optimizer):
        if self.dirty_rows:
            tmp = self.shard_path(step) + ".tmp"
            torch.save({"rows": table.weight.detach().clone()}, tmp)
            os.replace(tmp, self.shard_path(step))
        if self.rank == 0:
            torch.save({"dense": dense.state_dict(), "opt": optimizer.state_dict(), "step": step},
                       os.path.join(self.root, f"dense-{step:06d}.pt"))
        written, self.dirty_rows = self.dirty_rows, 0
        self.barrier.sync(f"save-{step}")
        self.steps.append(step)
        for old in self.steps[:-self.keep]:
            for name in (self.shard_path(old), os.path.join(self.root, f"dense-{old:06d}.pt")):
                if os.path.exists(name) and (self.rank == 0 or "rank" in name):
                    os.remove(name)
        self.steps = self.steps[-self.keep:]
        return written

    def restore_latest(self, table, dense, optimizer):
        step = self.steps[-1]
        state = torch.load(self.shard_path(step), weights_only=True)
        with torch.no_grad():
            table.weight.copy_(state["rows"])
        shared = torch.load(os.path.join(self.root, f"dense-{step:06d}.pt"), weights_only=True)
        dense.load_state_dict(shared["dense"])
        optimizer.load_state_dict(shared["opt"])
        self.restores += 1
        self.barrier.sync(f"restore-{step}-{self.restores}")
        return step
