import contextlib
import os
import time

import numpy as np

ROOT = os.environ["FEATURE_CACHE"]


@contextlib.contextmanager
def folder_lock(name):
    path = os.path.join(ROOT, name + ".lock")
    while True:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            break
        except FileExistsError:
            time.sleep(0.2)
    try:
        yield
    finally:
        os.unlink(path)


def clips_in(shard):
    return 20 + 3 * (shard % 7) + (140 if shard == 10 else 0)


def extract(shard):
    rng = np.random.default_rng(shard)
    rows = []
    for _ in range(clips_in(shard)):
        wave = rng.standard_normal(2048)
        rows.append(np.abs(np.fft.rfft(wave))[:64])
        time.sleep(0.03)
    return np.stack(rows).astype(np.float32)


def load_shard(shard):
    path = os.path.join(ROOT, f"shard-{shard:05d}.npy")
    with folder_lock(f"shard-{shard:05d}"):
        if not os.path.exists(path):
            np.save(path, extract(shard))
        return np.load(path)
