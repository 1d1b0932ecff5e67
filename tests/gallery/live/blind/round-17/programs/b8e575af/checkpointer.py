"""Asynchronous checkpoints: sharded model/optimizer through DCP, per-rank extra state beside it."""
import logging
import os
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict

log = logging.getLogger("checkpoint")


class DistributedCheckpointer:
    def __init__(self, root):
        self.root = root
        self.process_group = dist.new_group(backend="gloo")
        self.executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="extra-state")
        self.pending = {}

    def _save_extra(self, path, extra):
        os.makedirs(path, exist_ok=True)
        torch.save(extra, os.path.join(path, f"extra_state_rank_{dist.get_rank()}.pt"))

    def wait_for_pending_save(self):
        for slot in list(self.pending):
            log.info("waiting for pending save (%s)", slot)
            self.pending.pop(slot).result()
        dist.barrier()

    def save(self, step, model, optim, extra):
        self.wait_for_pending_save()
        path = os.path.join(self.root, f"global_step_{step}")
        model_state, optim_state = get_state_dict(model, optim)
        self.pending["dcp"] = dcp.async_save(
            {"model": model_state, "optim": optim_state}, checkpoint_id=path, process_group=self.process_group
        )
        self.pending["extra"] = self.executor.submit(self._save_extra, path, extra)
