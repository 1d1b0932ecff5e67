import hashlib
import io
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist


class AsyncSaver:
    """Sharded checkpoints written from a background thread."""

    def __init__(self, root, keep=3):
        self.root = root
        self.keep = keep
        self.rank = dist.get_rank()
        self.pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ckpt")
        self.pending = None
        self.lock = threading.Lock()

    def save(self, step, model_state, optim_state):
        if self.pending is not None and self.pending.done():
            self.pending.result()
        shard = {k: v.detach().clone() for k, v in model_state.items()}
        extra = {"step": step}
        if self.rank == 0:
            extra["optim"] = optim_state
        self.pending = self.pool.submit(self._write, step, shard, extra)
        return self.pending

    def _digest(self, obj):
        buf = io.BytesIO()
        torch.save(obj, buf)
        return hashlib.sha256(buf.getvalue()).hexdigest(), buf.getvalue()

    def _write(self, step, shard, extra):
        path = os.path.join(self.root, f"step_{step:06d}")
        os.makedirs(path, exist_ok=True)
        sha, blob = self._digest({"model": shard, **extra})
        plan = [None] * dist.get_world_size()
        dist.all_gather_object(plan, {"rank": self.rank, "sha256": sha, "bytes": len(blob)})
        with open(os.path.join(path, f"shard_{self.rank}.pt"), "wb") as f:
            f.write(blob)
        if self.rank == 0:
            with open(os.path.join(path, "plan.json"), "w") as f:
                json.dump(plan, f, indent=1)
        return path

    def close(self):
        self.pool.shutdown(wait=True)
