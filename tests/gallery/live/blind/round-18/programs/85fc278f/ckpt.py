import os
import shutil

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict


class AsyncSaver:
    def __init__(self, root, keep=2):
        self.root, self.keep = root, keep
        self.group = dist.new_group(backend="gloo")
        self.future, self.done = None, []

    def save(self, step, model, optimizer):
        if self.future is not None:
            self.future.result()
            self._retire()
        m, o = get_state_dict(model, optimizer)
        path = os.path.join(self.root, f"step-{step:06d}")
        self.future = dcp.async_save({"model": m, "optim": o}, checkpoint_id=path, process_group=self.group)
        self.done.append(path)

    def _retire(self):
        while len(self.done) > self.keep:
            old = self.done.pop(0)
            if dist.get_rank() == 0:
                shutil.rmtree(old, ignore_errors=True)

    def close(self):
        if self.future is not None:
            self.future.result()
