import json
import os

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_optimizer_state_dict
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType


class Checkpointer:
    def __init__(self, root, model, optimizer):
        self.root, self.model, self.optimizer = root, model, optimizer
        self.group = dist.new_group(backend="gloo")
        self.pending = []

    def _submit(self, state, path):
        fut = dcp.async_save(state, checkpoint_id=path, process_group=self.group,
                             async_checkpointer_type=AsyncCheckpointerType.PROCESS)
        self.pending.append(fut)
        return fut

    def wait(self):
        for fut in self.pending:
            fut.result()
        self.pending.clear()

    def save(self, step, extra):
        self.wait()
        path = os.path.join(self.root, f"step-{step}")
        weights = self._submit({"model": get_model_state_dict(self.model)}, os.path.join(path, "model"))
        if dist.get_rank() == 0:
            weights.result()
            with open(os.path.join(path, "model", "train_state.json"), "w") as f:
                json.dump({"step": step, **extra}, f)
        self._submit({"optim": get_optimizer_state_dict(self.model, self.optimizer)},
                     os.path.join(path, "optim"))
