import os
import shutil

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict


class AsyncCheckpointer:
    """Background checkpoints on a process group of their own, one in flight at most."""

    def __init__(self, root, keep=2):
        self.root = root
        self.keep = keep
        self.group = dist.new_group(backend="gloo")
        self.pending = None

    def _finish(self):
        if self.pending is None:
            return
        future, path = self.pending
        future.result()
        dist.barrier()
        if dist.get_rank() == 0:
            os.rename(path + ".incomplete", path)
            old = sorted(d for d in os.listdir(self.root) if not d.endswith(".incomplete"))[: -self.keep]
            for name in old:
                shutil.rmtree(os.path.join(self.root, name))
        dist.barrier()
        self.pending = None

    def save(self, step, model, opt):
        self._finish()
        weights, optim = get_state_dict(model, opt)
        path = os.path.join(self.root, f"step-{step:07d}")
        future = dcp.async_save(
            {"model": weights, "optim": optim}, checkpoint_id=path + ".incomplete", process_group=self.group
        )
        self.pending = (future, path)

    def close(self):
        self._finish()
