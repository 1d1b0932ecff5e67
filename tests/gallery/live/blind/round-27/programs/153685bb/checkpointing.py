import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict


class AsyncCheckpointer:
    """DCP async save on its own gloo group, then a throttled copy of the rank's files to the archive."""

    def __init__(self, local_dir, archive_dir, bytes_per_second=40_000, keep=2):
        self.local_dir, self.archive_dir = local_dir, archive_dir
        self.rate, self.keep = bytes_per_second, keep
        self.group = dist.new_group(backend="gloo")
        self.uploader = ThreadPoolExecutor(1, thread_name_prefix="archive")
        self.save_future, self.upload_future = None, None
        self.saved = []

    def save(self, step, model, optimizer):
        self.wait()
        model_sd, optim_sd = get_state_dict(model, optimizer)
        path = os.path.join(self.local_dir, f"step-{step}")
        self.save_future = dcp.async_save({"model": model_sd, "optim": optim_sd}, checkpoint_id=path,
                                          process_group=self.group)
        self.upload_future = self.uploader.submit(self._archive, path, self.save_future)
        self.saved.append(path)
        return path

    def wait(self):
        if self.save_future is not None:
            self.save_future.result()
            self.upload_future.result()
            dist.barrier(self.group)
            while len(self.saved) > self.keep:
                old = self.saved.pop(0)
                if dist.get_rank() == 0:
                    shutil.rmtree(old, ignore_errors=True)
                    shutil.rmtree(os.path.join(self.archive_dir, os.path.basename(old)), ignore_errors=True)

    def _archive(self, path, save_future):
        save_future.result()
        target = os.path.join(self.archive_dir, os.path.basename(path))
        os.makedirs(target, exist_ok=True)
        prefix = f"__{dist.get_rank()}_"
        for name in sorted(os.listdir(path)):
            if not name.startswith(prefix):
                continue
            with open(os.path.join(path, name), "rb") as src, open(os.path.join(target, name), "wb") as dst:
                while chunk := src.read(self.rate // 4):
                    dst.write(chunk)
                    time.sleep(0.25)
