import os
import shutil
import time

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict


class Checkpointer:
    def __init__(self, root, group, every_seconds, keep=2):
        self.root = root
        self.every_seconds = every_seconds
        self.keep = keep
        self.group = group
        self.saved = []
        self.last_save = time.monotonic()

    def due(self):
        return time.monotonic() - self.last_save >= self.every_seconds

    def save(self, step, model, optimizer):
        path = os.path.join(self.root, f"step-{step:07d}")
        model_sd, optim_sd = get_state_dict(model, optimizer)
        state = {"model": model_sd, "optim": optim_sd, "step": step}
        dcp.save(state, checkpoint_id=path, process_group=self.group)
        self.last_save = time.monotonic()
        self.saved.append(path)
        while len(self.saved) > self.keep:
            old = self.saved.pop(0)
            if dist.get_rank() == 0:
                shutil.rmtree(old, ignore_errors=True)
        return path
