"""Positional bias tables are costly to build, so they are kept on disk per length bucket."""
import os
import time

import torch
import torch.distributed as dist


class TableCache:
    def __init__(self, root):
        self.root = root
        self.mem = {}

    def _path(self, length):
        return os.path.join(self.root, f"bias-{length}.pt")

    def _build(self, length):
        pos = torch.arange(length, dtype=torch.float32)
        rel = (pos[None] - pos[:, None]).abs()
        time.sleep(0.6)
        return -torch.log1p(rel) / (length ** 0.5)

    def _write(self, table, length):
        tmp = self._path(length) + f".{os.getpid()}"
        torch.save(table, tmp)
        os.replace(tmp, self._path(length))

    def get(self, length):
        if length in self.mem:
            return self.mem[length]
        if os.path.exists(self._path(length)):
            table = torch.load(self._path(length))
        else:
            box = [None]
            if dist.get_rank() == 0:
                box[0] = self._build(length)
                self._write(box[0], length)
            dist.broadcast_object_list(box, src=0)
            table = box[0]
        self.mem[length] = table
        return table
