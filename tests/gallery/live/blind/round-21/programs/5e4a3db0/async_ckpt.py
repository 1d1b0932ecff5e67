import os
import random
import shutil
import time

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import FileSystemWriter
from torch.distributed.checkpoint.state_dict import get_state_dict


class RemoteStoreWriter(FileSystemWriter):
    """Writes locally with the latency of the object store the real job uploads to."""

    def __init__(self, path, latency):
        super().__init__(path)
        self.latency = latency

    def write_data(self, plan, planner):
        time.sleep(self.latency)
        return super().write_data(plan, planner)


class AsyncCheckpointer:
    def __init__(self, root, keep=2):
        self.root = root
        self.keep = keep
        self.group = dist.new_group(backend="gloo")
        self.done = []
        self.pending = None
        self.rng = random.Random(31 + dist.get_rank())

    def save(self, step, model, optimizer):
        self.finish()
        model_state, optim_state = get_state_dict(model, optimizer)
        target = os.path.join(self.root, f"step_{step}")
        writer = RemoteStoreWriter(target, latency=self.rng.uniform(4, 22))
        future = dcp.async_save({"model": model_state, "optim": optim_state}, storage_writer=writer,
                                process_group=self.group)
        self.pending = (target, future)

    def finish(self):
        if self.pending is None:
            return
        target, future = self.pending
        began = time.time()
        future.result()
        self.pending = None
        self.done.append(target)
        if dist.get_rank() == 0:
            print(f"{os.path.basename(target)} uploaded, waited {time.time() - began:.1f}s", flush=True)
            while len(self.done) > self.keep:
                shutil.rmtree(self.done.pop(0), ignore_errors=True)
