"""Rotation estimates for a batch of pairs, computed beside the training process."""
import multiprocessing as mp
import time

import numpy as np

from pair_store import PairStore

_store = None


def _open_store(folder):
    global _store
    _store = PairStore(folder)


def estimate_rotation(pair_id):
    kpts = _store.read(pair_id)
    src, dst = kpts[:, :2], kpts[:, 2:]
    rng = np.random.default_rng(pair_id)
    best = None
    for _ in range(8):
        pick = rng.choice(len(src), 6, replace=False)
        u, _, vt = np.linalg.svd(src[pick].T @ dst[pick])
        rot = (u @ vt).T
        err = np.abs(src @ rot.T - dst).mean()
        if best is None or err < best[0]:
            best = (err, rot)
    time.sleep(0.01)
    return kpts, best[1].astype(np.float32)


class GeometryPool:
    def __init__(self, folder, workers=2):
        self.pool = mp.get_context("spawn").Pool(workers, initializer=_open_store, initargs=(folder,))

    def annotate(self, pair_ids):
        out = self.pool.map(estimate_rotation, pair_ids, chunksize=2)
        kpts, rots = zip(*out)
        return np.stack(kpts), np.stack(rots)

    def close(self):
        self.pool.terminate()
        self.pool.join()
