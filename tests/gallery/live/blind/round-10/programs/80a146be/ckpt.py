import json
import os
import time
from pathlib import Path

import torch
from torch.distributed.tensor import DTensor


class CheckpointManager:
    """Every process writes its own shard, process 0 commits the step."""

    def __init__(self, directory, rank, world_size, keep=2):
        self.directory = Path(directory)
        self.rank, self.world_size, self.keep = rank, world_size, keep
        self.directory.mkdir(parents=True, exist_ok=True)

    def _shard(self, step_dir, rank):
        return step_dir / f"shard_{rank:05d}.pt"

    def save(self, step, model, meta):
        step_dir = self.directory / f"step_{step:07d}"
        step_dir.mkdir(exist_ok=True)
        local = {k: v.to_local() if isinstance(v, DTensor) else v for k, v in model.state_dict().items()}
        tmp = step_dir / f".shard_{self.rank:05d}.tmp"
        torch.save(local, tmp)
        os.replace(tmp, self._shard(step_dir, self.rank))
        commit = step_dir / "COMMITTED"
        if self.rank == 0:
            while not all(self._shard(step_dir, r).exists() for r in range(self.world_size)):
                time.sleep(0.1)
            commit.write_text(json.dumps(meta))
            self._trim()
        else:
            while not commit.exists():
                time.sleep(0.1)

    def _trim(self):
        done = sorted(p for p in self.directory.glob("step_*") if (p / "COMMITTED").exists())
        for old in done[: -self.keep]:
            for f in old.iterdir():
                f.unlink()
            old.rmdir()
