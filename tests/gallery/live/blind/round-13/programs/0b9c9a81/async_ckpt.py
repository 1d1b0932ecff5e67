import logging
import multiprocessing as mp
import os
import time

import torch

log = logging.getLogger("ckpt")
_ctx = mp.get_context("fork")


def _write_shard(path, state, archive):
    tmp = path + ".tmp"
    with open(tmp, "wb") as f:
        torch.save(state, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(tmp, path)
    if archive is not None:
        archive.add_artifact(os.path.basename(path), os.path.getsize(path))


class AsyncCaller:
    def __init__(self, archive=None):
        self.archive = archive
        self.process = None
        self.started = 0.0

    def schedule(self, path, state):
        self.process = _ctx.Process(target=_write_shard, args=(path, state, self.archive))
        self.started = time.time()
        self.process.start()

    def finalize(self):
        if self.process is None:
            return
        self.process.join()
        log.info("previous save finished (%.1fs ago)", time.time() - self.started)
        self.process = None
