import os
import shutil
import time

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import FileSystemWriter
from torch.distributed.checkpoint.state_dict import get_state_dict


class ThrottledWriter(FileSystemWriter):
    def __init__(self, path, seconds=7.0):
        super().__init__(path)
        self.seconds = seconds

    def write_data(self, plan, planner):
        time.sleep(self.seconds)
        return super().write_data(plan, planner)


class Checkpointer:
    def __init__(self, root, log):
        self.root, self.log = root, log
        self.pg = dist.new_group(backend="gloo")
        self.future, self.path = None, None

    def maybe_wait(self):
        if self.future is not None:
            t0 = time.time()
            self.future.result()
            self.log(f"waited {time.time() - t0:.1f}s for the previous checkpoint {self.path}")
            self.future = None

    def save(self, step, model, optim):
        self.maybe_wait()
        if dist.get_rank() == 0 and os.path.exists(self.root):
            for old in sorted(os.listdir(self.root))[:-1]:
                shutil.rmtree(os.path.join(self.root, old), ignore_errors=True)
        msd, osd = get_state_dict(model, optim)
        self.path = os.path.join(self.root, f"step-{step:06d}")
        self.future = dcp.async_save({"model": msd, "optim": osd}, storage_writer=ThrottledWriter(self.path),
                                     process_group=self.pg)
        self.log(f"checkpoint {self.path} staged")
