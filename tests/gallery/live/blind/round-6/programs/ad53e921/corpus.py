import fcntl
import multiprocessing as mp
import os
import time
import zlib

import numpy as np


def _augment(job):
    seed, n = job
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        s = rng.integers(0, 97, 64, dtype="int64")
        for _ in range(12):
            s = (s + zlib.crc32(s.tobytes()) % 7) % 97
        out.append(s)
    time.sleep(1.0)
    return np.stack(out)


def regenerate(rank, epoch, parts=24, each=20):
    """Fresh augmented data for some epochs, made by two helper processes."""
    with mp.get_context("fork").Pool(2) as pool:
        rows = pool.map(_augment, [(1000 * epoch + 100 * rank + k, each) for k in range(parts)], chunksize=1)
    return np.concatenate(rows)


def vocabulary(path="vocab.npy", lock="vocab.lock"):
    """The first process builds the table, the others wait for the lock and read it."""
    with open(lock, "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        if not os.path.exists(path):
            table = np.zeros((97, 16), "float32")
            for i in range(97):
                table[i] = np.random.default_rng(i).normal(0, 0.1, 16)
                time.sleep(0.12)
            np.save(path + ".tmp.npy", table)
            os.replace(path + ".tmp.npy", path)
        fcntl.flock(f, fcntl.LOCK_UN)
    return np.load(path)
