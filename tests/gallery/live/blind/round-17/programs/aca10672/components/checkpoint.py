import logging
import os
import queue
import re
import shutil
import threading

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict

logger = logging.getLogger("titan")


def purge_thread(purge_queue):
    """Delete old checkpoints without blocking the training loop."""
    while True:
        path = purge_queue.get()
        if path is None:
            return
        shutil.rmtree(path, ignore_errors=True)


class CheckpointManager:
    def __init__(self, folder, interval, keep_latest_k):
        self.folder = folder
        self.interval = interval
        self.keep_latest_k = keep_latest_k
        self.purger = None
        os.makedirs(folder, exist_ok=True)
        if keep_latest_k > 0 and dist.get_rank() == 0:
            self.purge_queue = queue.Queue()
            self.purger = threading.Thread(target=purge_thread, args=(self.purge_queue,), name="ckpt_purge")
            self.purger.start()

    def save(self, step, model, optimizer, force=False):
        if not force and step % self.interval != 0:
            return
        model_sd, optim_sd = get_state_dict(model, optimizer)
        dcp.save({"model": model_sd, "optimizer": optim_sd},
                 checkpoint_id=os.path.join(self.folder, f"step-{step}"))
        logger.info("Saved the checkpoint at step %d", step)
        self._purge_stale_checkpoints()

    def _purge_stale_checkpoints(self):
        if self.purger is None:
            return
        found = []
        for name in os.listdir(self.folder):
            m = re.fullmatch(r"step-(\d+)", name)
            if m:
                found.append((int(m.group(1)), os.path.join(self.folder, name)))
        for _, path in sorted(found)[: -self.keep_latest_k]:
            self.purge_queue.put(path)

    def close(self):
        if self.purger is not None:
            self.purge_queue.put(None)
            self.purger.join()
