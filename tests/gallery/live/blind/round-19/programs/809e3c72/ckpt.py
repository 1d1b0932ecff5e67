import multiprocessing as mp
import os

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict

from uploader import upload_loop


class Checkpointer:
    def __init__(self, out):
        self.out, self.rank = out, dist.get_rank()
        self.group = dist.new_group(backend="gloo")
        self.future, self.folder = None, None
        self.tasks = None
        if self.rank == 0:
            ctx = mp.get_context("spawn")
            self.tasks = ctx.Queue()
            self.proc = ctx.Process(target=upload_loop, args=(self.tasks, os.path.join(out, "bucket")), daemon=True)
            self.proc.start()

    def wait(self):
        if self.future is not None:
            self.future.result()
            if self.tasks is not None:
                self.tasks.put(self.folder)
            self.future = None

    def save(self, step, model, opt):
        self.wait()
        m, o = get_state_dict(model, opt)
        self.folder = os.path.join(self.out, f"step-{step:07d}")
        self.future = dcp.async_save({"model": m, "optim": o}, checkpoint_id=self.folder, process_group=self.group)
