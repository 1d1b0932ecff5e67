import os
import shutil
import tempfile

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict


class AsyncSaver:
    """Sharded saves in the background on a process group of their own."""

    def __init__(self, keep=2):
        self.group = dist.new_group(backend="gloo")
        root = [tempfile.mkdtemp(prefix="dcp_") if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(root, src=0)
        self.root, self.keep, self.future, self.saved = root[0], keep, None, []

    def save(self, model, optim, step):
        if self.future is not None:
            self.future.result()
        model_sd, optim_sd = get_state_dict(model, optim)
        path = os.path.join(self.root, f"step-{step}")
        self.future = dcp.async_save(
            {"model": model_sd, "optim": optim_sd}, checkpoint_id=path, process_group=self.group
        )
        self.saved.append(path)
        if dist.get_rank() == 0 and len(self.saved) > self.keep:
            shutil.rmtree(self.saved[-self.keep - 1], ignore_errors=True)
