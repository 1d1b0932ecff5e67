import os
import shutil
import time

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful


class TrainState(Stateful):
    def __init__(self, model, optimizer):
        self.model, self.optimizer, self.step = model, optimizer, 0

    def state_dict(self):
        model, optim = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optim": optim, "step": self.step}

    def load_state_dict(self, sd):
        set_state_dict(self.model, self.optimizer, model_state_dict=sd["model"], optim_state_dict=sd["optim"])
        self.step = sd["step"]


class CheckpointManager:
    def __init__(self, state, folder, every, keep=2):
        self.state, self.folder, self.every, self.keep = state, folder, every, keep
        self.future = None

    def _wait(self):
        if self.future is not None:
            t0 = time.time()
            self.future.result()
            self.future = None
            if dist.get_rank() == 0:
                print(f"[ckpt] waited {time.time() - t0:.2f}s for the previous save", flush=True)

    def _purge(self):
        if dist.get_rank() != 0:
            return
        steps = sorted(int(d.split("-")[1]) for d in os.listdir(self.folder) if d.startswith("step-"))
        for s in steps[:-self.keep]:
            shutil.rmtree(os.path.join(self.folder, f"step-{s}"), ignore_errors=True)

    def save(self, step):
        if step % self.every:
            return
        self._wait()
        self.state.step = step
        path = os.path.join(self.folder, f"step-{step}")
        self.future = dcp.async_save({"app": self.state}, checkpoint_id=path)
        self._purge()
        dist.barrier()
        if dist.get_rank() == 0:
            print(f"[ckpt] dispatched {path}", flush=True)
