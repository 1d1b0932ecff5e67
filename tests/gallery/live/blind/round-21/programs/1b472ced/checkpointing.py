import os
import shutil

import torch.distributed as dist
import torch.distributed.checkpoint as dcp


class ThrottledWriter(dcp.FileSystemWriter):
    def write_data(self, plan, planner):
        import time
        time.sleep(9)
        return super().write_data(plan, planner)


class AsyncCheckpointer:
    def __init__(self, root, keep=2):
        self.root, self.keep = root, keep
        self.group = dist.new_group(backend="gloo")
        self.pending, self.done = None, []

    def wait(self):
        if self.pending is not None:
            step, future = self.pending
            future.result()
            self.done.append(step)
            self.pending = None
            if dist.get_rank() == 0:
                while len(self.done) > self.keep:
                    shutil.rmtree(os.path.join(self.root, f"step-{self.done.pop(0)}"), ignore_errors=True)

    def save(self, state, step):
        self.wait()
        path = os.path.join(self.root, f"step-{step}")
        future = dcp.async_save(state, storage_writer=ThrottledWriter(path), process_group=self.group)
        self.pending = (step, future)
