import os
import shutil
import tempfile
import time

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import FileSystemWriter
from torch.distributed.checkpoint.state_dict import get_state_dict


class ArchiveWriter(FileSystemWriter):
    """Writer for a mounted archive that accepts a few shards a second."""

    def write_data(self, plan, planner):
        time.sleep(7.0)
        return super().write_data(plan, planner)


class AsyncCheckpointer:
    def __init__(self, keep=2):
        rank = dist.get_rank()
        box = [tempfile.mkdtemp(prefix="act_ckpt_") if rank == 0 else None]
        dist.broadcast_object_list(box, src=0)
        self.root = box[0]
        self.group = dist.new_group(backend="gloo")
        self.keep = keep
        self.pending = None
        self.done = []

    def drain(self):
        if self.pending is not None:
            future, path = self.pending
            future.result()
            self.pending = None
            self.done.append(path)
            if dist.get_rank() == 0 and len(self.done) > self.keep:
                shutil.rmtree(self.done[-self.keep - 1], ignore_errors=True)

    def save(self, model, optimizer, step):
        self.drain()
        model_state, optim_state = get_state_dict(model, optimizer)
        path = os.path.join(self.root, f"step_{step}")
        future = dcp.async_save(
            {"model": model_state, "optim": optim_state},
            storage_writer=ArchiveWriter(path),
            process_group=self.group,
        )
        self.pending = (future, path)
