import json
import os
import shutil
import time

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict


class CheckpointManager:
    def __init__(self, root, keep, log):
        self.root, self.keep, self.log = root, keep, log
        os.makedirs(root, exist_ok=True)
        self.pending = None
        self.saved = []
        self.group = dist.new_group(backend="gloo")

    def _path(self, step):
        return os.path.join(self.root, f"step_{step:06d}")

    def _prune(self):
        while len(self.saved) > self.keep:
            shutil.rmtree(self._path(self.saved.pop(0)), ignore_errors=True)

    def wait(self):
        if self.pending is not None:
            self.pending.result()
            self.pending = None

    def save(self, step, model, optim):
        self.wait()
        msd, osd = get_state_dict(model, optim)
        self.log.info("saving checkpoint at step %d (async)", step)
        self.pending = dcp.async_save({"model": msd, "optim": osd}, checkpoint_id=self._path(step),
                                      process_group=self.group)
        self.saved.append(step)
        if dist.get_rank() == 0:
            self._prune()
            self._write_latest(step)
        dist.barrier(group=self.group)

    def _write_latest(self, step):
        tmp = os.path.join(self.root, "latest.tmp")
        with open(tmp, "w") as f:
            json.dump({"step": step, "time": time.time()}, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(tmp, os.path.join(self.root, "latest"))
