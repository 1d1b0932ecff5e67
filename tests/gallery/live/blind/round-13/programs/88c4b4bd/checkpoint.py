import logging
import os
import shutil
import time

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict

logger = logging.getLogger("checkpoint")


class CheckpointManager:
    def __init__(self, folder, interval, keep=2):
        self.folder, self.interval, self.keep = folder, interval, keep
        self.pg = dist.new_group(backend="gloo")
        self.future = None
        self.saved = []

    def _wait(self):
        if self.future is None:
            return
        t0 = time.monotonic()
        self.future.result()
        self.future = None
        if dist.get_rank() == 0:
            logger.info("previous async save completed, waited %.2fs", time.monotonic() - t0)

    def _purge(self):
        while len(self.saved) > self.keep:
            old = self.saved.pop(0)
            if dist.get_rank() == 0:
                shutil.rmtree(old, ignore_errors=True)

    def save(self, model, optimizer, step, force=False):
        if not force and step % self.interval:
            return
        self._wait()
        self._purge()
        model_sd, optim_sd = get_state_dict(model, optimizer)
        path = os.path.join(self.folder, f"step-{step}")
        self.future = dcp.async_save({"model": model_sd, "optim": optim_sd}, checkpoint_id=path, process_group=self.pg)
        self.saved.append(path)

    def close(self):
        self._wait()
