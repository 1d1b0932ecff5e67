import os

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict


class DistributedCheckpointer:
    def __init__(self, root, keep="best"):
        self.root = root
        self.keep = keep

    def path(self, name):
        return os.path.join(self.root, str(name))

    def save_checkpoint(self, model, optimizer, epoch):
        model_sd, optim_sd = get_state_dict(model, optimizer)
        dcp.save({"model": model_sd, "optim": optim_sd, "epoch": epoch}, checkpoint_id=self.path(self.keep))
        dist.barrier()
