import os
import shutil
import tempfile

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict


class RollingCheckpoint:
    def __init__(self, every, keep=2):
        root = [tempfile.mkdtemp(prefix="fsdp-ck-") if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(root, src=0)
        self.root, self.every, self.keep = root[0], every, keep
        self.group = dist.new_group(backend="gloo")
        self.pending = None
        self.done = []

    def maybe_save(self, step, model, optimizer):
        if step % self.every:
            return
        if self.pending is not None:
            self.pending.result()
        path = os.path.join(self.root, f"step-{step}")
        weights, optim = get_state_dict(model, optimizer)
        self.pending = dcp.async_save({"model": weights, "optim": optim}, checkpoint_id=path, process_group=self.group)
        self.done.append(path)
        while len(self.done) > self.keep:
            old = self.done.pop(0)
            if dist.get_rank() == 0:
                shutil.rmtree(old, ignore_errors=True)
