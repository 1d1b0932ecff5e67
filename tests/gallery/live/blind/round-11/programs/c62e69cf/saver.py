import os
import shutil

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict


class AsyncSaver:
    def __init__(self, root, keep=2):
        self.root, self.keep = root, keep
        self.group = dist.new_group(backend="gloo")
        self.future = None
        self.paths = []

    def finish(self):
        if self.future is not None:
            self.future.result()
            self.future = None
            dist.barrier(group=self.group)
            if dist.get_rank() == 0:
                while len(self.paths) > self.keep:
                    shutil.rmtree(self.paths.pop(0), ignore_errors=True)

    def save(self, step, model, opt):
        self.finish()
        path = os.path.join(self.root, f"{step:07d}")
        m, o = get_state_dict(model, opt)
        self.future = dcp.async_save({"model": m, "optim": o}, checkpoint_id=path, process_group=self.group)
        self.paths.append(path)
