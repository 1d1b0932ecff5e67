import shutil
import time
from pathlib import Path

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import FileSystemWriter
from torch.distributed.checkpoint.state_dict import get_state_dict


class ThrottledWriter(FileSystemWriter):
    """Limits the write rate so that the shared disk stays usable for others."""

    def __init__(self, path, seconds_per_file=5.0):
        super().__init__(path, single_file_per_rank=True, sync_files=False)
        self.seconds_per_file = seconds_per_file

    def write_data(self, plan, planner):
        time.sleep(self.seconds_per_file)
        return super().write_data(plan, planner)


class Checkpointer:
    def __init__(self, root, model, optim, keep=2):
        self.root = Path(root)
        self.model, self.optim = model, optim
        self.keep = keep
        self.group = dist.new_group(backend="gloo")
        self.pending = None

    def save(self, step):
        self.wait()
        model_sd, optim_sd = get_state_dict(self.model, self.optim)
        path = self.root / f"step-{step:07d}"
        rank = dist.get_rank()
        self.pending = dcp.async_save(
            {"model": model_sd, "optim": optim_sd},
            storage_writer=ThrottledWriter(path, 9.0 if rank == 0 else 4.0),
            process_group=self.group,
        )

    def wait(self):
        if self.pending is not None:
            self.pending.result()
            self.pending = None
            dist.barrier(group=self.group)
            if dist.get_rank() == 0:
                done = sorted(p for p in self.root.glob("step-*"))
                for old in done[: -self.keep]:
                    shutil.rmtree(old)
