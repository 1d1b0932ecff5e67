import os
import shutil
import tempfile

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict


class AsyncSaver:
    """Writes sharded checkpoints in the background, on a group of its own."""

    def __init__(self, keep=2):
        self.group = dist.new_group(backend="gloo")
        box = [tempfile.mkdtemp(prefix="pretrain-ckpt-") if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(box, src=0)
        self.root, self.keep, self.pending, self.saved = box[0], keep, None, []

    def wait(self):
        if self.pending is None:
            return
        future, path = self.pending
        future.result()
        self.pending = None
        self.saved.append(path)
        if dist.get_rank() == 0:
            print(f"saved {os.path.basename(path)}", flush=True)
            for old in self.saved[: -self.keep]:
                shutil.rmtree(old, ignore_errors=True)

    def save(self, model, opt, step):
        self.wait()
        model_state, opt_state = get_state_dict(model, opt)
        path = os.path.join(self.root, f"step-{step}")
        future = dcp.async_save({"model": model_state, "opt": opt_state}, checkpoint_id=path, process_group=self.group)
        self.pending = (future, path)
