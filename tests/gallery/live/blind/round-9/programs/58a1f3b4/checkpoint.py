import os

import torch.distributed as dist
import torch.distributed.checkpoint as dcp


class Checkpointer:
    def __init__(self, out):
        self.out = out
        self.group = None

    def save(self, model, optimizer, step):
        if self.group is None:
            self.group = dist.new_group(backend="gloo")
        path = os.path.join(self.out, f"step_{step:06d}")
        state = {"model": model.state_dict(), "optim": optimizer.state_dict(), "step": step}
        dcp.save(state, checkpoint_id=path, process_group=self.group)
        if dist.get_rank() == 0:
            print(f"checkpoint written to {path}", flush=True)
