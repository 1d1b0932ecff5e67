import os
import tempfile

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    set_model_state_dict,
)


class BestKeeper:
    """Keeps one unsharded file with the weights of the best evaluation."""

    def __init__(self):
        self.score = float("inf")
        self.path = None
        self.dir = tempfile.mkdtemp(prefix="best-") if dist.get_rank() == 0 else None

    def offer(self, model, score, step):
        if score >= self.score:
            return
        self.score = score
        state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
        if dist.get_rank() == 0:
            self.path = os.path.join(self.dir, "model.pt")
            torch.save(state, self.path)
            print(f"step {step}: new best {score:.4f} -> {self.path}", flush=True)

    def restore(self, model):
        if self.path is None:
            return
        state = torch.load(self.path, map_location="cpu", weights_only=True)
        set_model_state_dict(
            model, state, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        )
        print(f"restored best weights ({self.score:.4f})", flush=True)
