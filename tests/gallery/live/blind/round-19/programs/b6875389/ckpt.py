import os
import shutil

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict


class Checkpointer:
    """One asynchronous DCP session at a time, on a group of its own."""

    def __init__(self, root, keep=2):
        self.root, self.keep = root, keep
        self.group = dist.new_group(backend="gloo")
        self.pending = None
        self.saved = []

    def wait(self):
        if self.pending is None:
            return
        self.pending.result()
        self.pending = None
        dist.barrier(group=self.group)
        if dist.get_rank() == 0:
            for step in self.saved[: -self.keep]:
                shutil.rmtree(os.path.join(self.root, f"step-{step}"), ignore_errors=True)
        self.saved = self.saved[-self.keep:]

    def save(self, step, model, optimizer):
        self.wait()
        msd, osd = get_state_dict(model, optimizer)
        self.pending = dcp.async_save({"model": msd, "optim": osd}, checkpoint_id=os.path.join(self.root, f"step-{step}"),
                                      process_group=self.group)
        self.saved.append(step)
