import shutil
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict


class CheckpointManager:
    def __init__(self, root, interval, keep_last):
        self.root = Path(root)
        self.interval = interval
        self.keep_last = keep_last
        self.is_master = dist.get_rank() == 0
        self.group = dist.new_group(backend="gloo", timeout=timedelta(hours=1))
        self.ckpt_steps = []

    def path(self, step):
        return self.root / f"step_{step:06d}"

    def should_save(self, step):
        return step > 0 and step % self.interval == 0 and step not in self.ckpt_steps

    def save(self, step, model, optimizer):
        if not self.should_save(step):
            return
        model_sd, optim_sd = get_state_dict(model, optimizer)
        dcp.save({"model": model_sd, "optim": optim_sd}, checkpoint_id=str(self.path(step)), process_group=self.group)
        self.ckpt_steps.append(step)
        if self.is_master:
            print(f"saved {self.path(step).name}", flush=True)
        self.maybe_clean()

    def maybe_clean(self):
        while len(self.ckpt_steps) > self.keep_last:
            old = self.ckpt_steps.pop(0)
            if self.is_master:
                shutil.rmtree(self.path(old), ignore_errors=True)

    def discard_after(self, step):
        if not self.is_master:
            return
        for newer in [s for s in self.ckpt_steps if s > step]:
            shutil.rmtree(self.path(newer), ignore_errors=True)
            self.ckpt_steps.remove(newer)

    def restore(self, step, model, optimizer):
        model_sd, optim_sd = get_state_dict(model, optimizer)
        state = {"model": model_sd, "optim": optim_sd}
        dcp.load(state, checkpoint_id=str(self.path(step)), process_group=self.group)
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
        dist.barrier(group=self.group)
        self.discard_after(step)
        return step
