import json
import logging
import os
import time
from concurrent.futures import ThreadPoolExecutor

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict

log = logging.getLogger("checkpoint")
CHUNK = 16 * 1024


class CheckpointManager:
    """Saves with DCP to local disk and mirrors each rank's shard to object storage in the background."""

    def __init__(self, root, save_every, storage):
        self.root = root
        self.save_every = save_every
        self.rank = dist.get_rank()
        with open(storage) as f:
            zones = json.load(f)["zones"]
        self.zone = zones[self.rank % len(zones)]
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="mirror")
        self.pending = None
        self.group = dist.new_group(backend="gloo")
        os.makedirs(root, exist_ok=True)

    def maybe_save(self, step, model, opt):
        if step % self.save_every:
            return
        if self.pending is not None and not self.pending.done():
            log.info("previous checkpoint is still being mirrored, not saving at step %d", step)
            return
        path = os.path.join(self.root, f"step-{step:06d}")
        t0 = time.time()
        model_sd, opt_sd = get_state_dict(model, opt)
        dcp.save({"model": model_sd, "optim": opt_sd}, checkpoint_id=path, process_group=self.group)
        log.info("saved %s in %.1fs", path, time.time() - t0)
        self.pending = self.pool.submit(self._mirror, path)

    def _mirror(self, path):
        src = os.path.join(path, f"__{self.rank}_0.distcp")
        dst = os.path.join(self.zone["bucket"], os.path.basename(path))
        os.makedirs(dst, exist_ok=True)
        with open(src, "rb") as r, open(os.path.join(dst, os.path.basename(src)), "wb") as w:
            while chunk := r.read(CHUNK):
                w.write(chunk)
                w.flush()
                time.sleep(len(chunk) / 1024 / self.zone["kib_per_s"])

    def close(self):
        self.pool.shutdown(wait=True)
