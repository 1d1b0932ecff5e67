import json
import os
import shutil
import time

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict


class Checkpointer:
    """Writes into <name>-tmp, then rank 0 adds the metadata and moves the folder into place."""

    def __init__(self, root, keep=2):
        self.root, self.keep, self.saved = root, keep, []

    def save(self, name, model, optimizer, info):
        final = os.path.join(self.root, name)
        work = final + "-tmp"
        model_sd, optim_sd = get_state_dict(model, optimizer)
        dcp.save({"model": model_sd, "optim": optim_sd}, checkpoint_id=work)
        if dist.get_rank() == 0:
            with open(os.path.join(work, "info.json"), "w") as f:
                json.dump(info, f, indent=1)
            os.replace(work, final)
        while not os.path.isdir(final):
            time.sleep(0.1)
        dist.barrier()
        self.saved.append(final)
        if dist.get_rank() == 0 and len(self.saved) > self.keep:
            shutil.rmtree(self.saved.pop(0))
        return final
