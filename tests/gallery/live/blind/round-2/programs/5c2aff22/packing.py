import logging
import os
import time

import numpy as np
import torch.distributed as dist
from filelock import FileLock

log = logging.getLogger("packing")


def build_index(path, version, n=2000):
    rng = np.random.default_rng(version)
    lengths = rng.integers(8, 64, size=n)
    time.sleep(1.0)
    np.save(path + ".tmp.npy", np.argsort(lengths)[: n // 2])
    os.replace(path + ".tmp.npy", path)


def load_packed_index(cache_dir, version):
    os.makedirs(cache_dir, exist_ok=True)
    path = os.path.join(cache_dir, f"packed-v{version}.npy")
    if os.path.exists(path):
        return np.load(path)
    time.sleep(0.4 * dist.get_rank())
    with FileLock(os.path.join(cache_dir, "packed.lock")):
        if not os.path.exists(path):
            log.info("building packed index v%d", version)
            build_index(path, version)
        index = np.load(path)
        dist.barrier()
    return index
