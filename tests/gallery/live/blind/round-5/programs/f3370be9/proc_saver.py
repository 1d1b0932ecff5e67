"""checkpoint writing through one helper process per rank"""
import os, subprocess, sys, time
from concurrent.futures import ThreadPoolExecutor
import torch
import torch.distributed as dist

_HELPER = None


class ProcSaver:
    def __init__(self, root):
        os.makedirs(root, exist_ok=True)
        self.root = root
        self.rank = dist.get_rank()
        self.pg = dist.new_group(backend="gloo")
        self.pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ckpt-exec")

    def _start_helper(self):
        global _HELPER
        p = subprocess.Popen([sys.executable, "-S", "writer.py"], stdin=subprocess.PIPE)
        # agree on the run id the helpers tag their files with
        tag = [str(time.time())]
        tags = [None] * dist.get_world_size(self.pg)
        dist.all_gather_object(tags, tag[0], group=self.pg)
        _HELPER = (p, tags[0])

    def _execute(self, name, state, must_start):
        if must_start:
            self._start_helper()
        path = os.path.join(self.root, f"{name}.{self.rank}.pt")
        torch.save(state, path + ".tmp")
        p, tag = _HELPER
        p.stdin.write(f"{path} {tag}\n".encode())
        p.stdin.flush()

    def execute_save(self, name, state):
        return self.pool.submit(self._execute, name, state, _HELPER is None)
