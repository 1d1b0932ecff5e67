import os
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict


def wait_for(condition, description, interval=0.5):
    waited = 0.0
    while not condition():
        time.sleep(interval)
        waited += interval
        if waited % 30 == 0:
            print(f"still waiting for {description}", flush=True)


class Checkpointer:
    def __init__(self, folder, keep=2):
        self.folder = folder
        self.keep = keep
        self.saved = []

    def _write_metadata(self, directory, step, history):
        window = history[-50:]
        torch.save(
            {"step": step, "loss_mean": sum(window) / len(window), "loss_min": min(window)},
            os.path.join(directory, "train.pt"),
        )

    def _prune(self):
        while len(self.saved) >= self.keep:
            oldest = self.saved.pop(0)
            for name in os.listdir(oldest):
                os.remove(os.path.join(oldest, name))
            os.rmdir(oldest)

    def save(self, model, optimizer, step, history):
        final = os.path.join(self.folder, f"step{step}")
        tmp = final + "-tmp"
        if dist.get_rank() == 0:
            os.makedirs(os.path.join(tmp, "model_and_optim"), exist_ok=True)
        wait_for(lambda: os.path.exists(tmp), f"{os.path.basename(tmp)}")
        model_state, optim_state = get_state_dict(model, optimizer)
        dcp.save({"model": model_state, "optim": optim_state},
                 checkpoint_id=os.path.join(tmp, "model_and_optim"))
        if dist.get_rank() == 0:
            self._write_metadata(tmp, step, history)
            self._prune()
            os.replace(tmp, final)
        wait_for(lambda: os.path.exists(final), f"{os.path.basename(final)}")
        self.saved.append(final)
