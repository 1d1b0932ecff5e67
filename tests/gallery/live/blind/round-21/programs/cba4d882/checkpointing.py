import os
import time

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict


class PeriodicCheckpointer:
    def __init__(self, folder, every_seconds):
        self.folder = folder
        self.every_seconds = every_seconds
        self.last_saved = time.monotonic()

    def due(self):
        return time.monotonic() - self.last_saved >= self.every_seconds

    def save(self, step, model, optimizer):
        dist.barrier()
        model_state, optim_state = get_state_dict(model, optimizer)
        target = os.path.join(self.folder, f"step-{step}")
        dcp.save({"model": model_state, "optim": optim_state}, checkpoint_id=target)
        self.last_saved = time.monotonic()
        if dist.get_rank() == 0:
            print(f"wrote {target}", flush=True)
