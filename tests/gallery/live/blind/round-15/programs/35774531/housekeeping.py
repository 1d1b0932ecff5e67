import gc
import os
import shutil

import torch.distributed as dist
import torch.distributed.checkpoint as dcp


class ScheduledGC:
    """Automatic collection off; all ranks collect at the same steps."""

    def __init__(self, every):
        self.every = every
        gc.disable()
        gc.collect()

    def __call__(self, step):
        if step % self.every == 0:
            gc.collect(1)


class AsyncCheckpoints:
    def __init__(self, folder, keep=2):
        self.folder, self.keep = folder, keep
        self.group = dist.new_group(backend="gloo")
        self.pending, self.done = None, []

    def wait(self):
        if self.pending is not None:
            step, future = self.pending
            future.result()
            self.pending = None
            self.done.append(step)
            if dist.get_rank() == 0:
                while len(self.done) > self.keep:
                    shutil.rmtree(os.path.join(self.folder, f"step-{self.done.pop(0)}"), ignore_errors=True)

    def save(self, step, state):
        self.wait()
        path = os.path.join(self.folder, f"step-{step}")
        self.pending = (step, dcp.async_save(state, checkpoint_id=path, process_group=self.group))
