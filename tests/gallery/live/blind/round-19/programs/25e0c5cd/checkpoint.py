import os
import time

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

from dist_utils import extended_timeout


class ShardWriter:
    """One file per shard of the first replica."""

    def __init__(self, mesh, folder):
        self.folder = folder
        self.replica = mesh.get_local_rank("replicate")
        self.shard = mesh.get_local_rank("shard")
        self.shard_ranks = dist.get_process_group_ranks(mesh.get_group("shard"))

    def save(self, step, model, optimizer):
        if self.replica != 0:
            return
        start = time.time()
        with extended_timeout(self.shard_ranks):
            local = {k: v.to_local() if isinstance(v, DTensor) else v for k, v in model.state_dict().items()}
            moments = {
                i: {k: v.to_local() if isinstance(v, DTensor) else v for k, v in s.items()}
                for i, s in enumerate(optimizer.state.values())
            }
            path = os.path.join(self.folder, f"step-{step:06d}")
            os.makedirs(path, exist_ok=True)
            torch.save({"model": local, "moments": moments, "step": step}, os.path.join(path, f"shard-{self.shard}.pt"))
        if self.shard == 0:
            print(f"saved {path} in {time.time() - start:.1f}s", flush=True)
