import os
import shutil
import tempfile

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict


class AsyncSaver:
    def __init__(self, keep=2):
        root = [tempfile.mkdtemp(prefix="lm-ckpt-") if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(root, src=0)
        self.root, self.keep = root[0], keep
        self.group = dist.new_group(backend="gloo")
        self.future, self.saved = None, []

    def save(self, step, model, opt):
        self.finish()
        m, o = get_state_dict(model, opt)
        path = os.path.join(self.root, f"step-{step}")
        self.future = dcp.async_save({"model": m, "optim": o}, checkpoint_id=path, process_group=self.group)
        self.saved.append(path)

    def finish(self):
        if self.future is None:
            return
        self.future.result()
        self.future = None
        while len(self.saved) > self.keep:
            old = self.saved.pop(0)
            if dist.get_rank() == 0:
                shutil.rmtree(old, ignore_errors=True)
