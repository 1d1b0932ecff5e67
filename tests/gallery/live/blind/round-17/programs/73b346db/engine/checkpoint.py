import logging
import os
import shutil
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict

log = logging.getLogger("ckpt")


class Checkpointer:
    def __init__(self, root, max_attempts=3):
        self.root = root
        self.max_attempts = max_attempts
        self.rank = dist.get_rank()
        self.group = dist.new_group(backend="gloo")
        os.makedirs(root, exist_ok=True)

    def _write_rank_state(self, tmp, step, loader_state):
        path = os.path.join(tmp, f"rank_{self.rank}.pt")
        with open(path, "xb") as f:
            torch.save({"step": step, "loader": loader_state, "rng": torch.get_rng_state()}, f)

    def _save_once(self, step, model, optim, loader_state):
        tmp = os.path.join(self.root, f"step_{step}.incomplete")
        os.makedirs(tmp, exist_ok=True)
        self._write_rank_state(tmp, step, loader_state)
        model_sd, optim_sd = get_state_dict(model, optim)
        dcp.save({"model": model_sd, "optim": optim_sd},
                 checkpoint_id=os.path.join(tmp, "weights"), process_group=self.group)
        dist.barrier(group=self.group)
        if self.rank == 0:
            final = tmp[: -len(".incomplete")]
            shutil.rmtree(final, ignore_errors=True)
            os.rename(tmp, final)

    def save(self, step, model, optim, loader_state):
        for attempt in range(1, self.max_attempts + 1):
            try:
                self._save_once(step, model, optim, loader_state)
                return True
            except OSError as e:
                log.warning("[rank %d] checkpoint at step %d, attempt %d/%d: %s",
                            self.rank, step, attempt, self.max_attempts, e)
                time.sleep(0.5 * attempt)
        log.error("[rank %d] giving up on checkpoint at step %d", self.rank, step)
        return False
