import logging
import os
import random

import numpy as np
from filelock import SoftFileLock

log = logging.getLogger(__name__)
CHARS = "abcdefghijklmnopqrstuvwxyz .,;\n"


def _synthesize(n_chars, seed=11):
    rng = random.Random(seed)
    words = ["".join(rng.choices(CHARS[:26], k=rng.randint(2, 9))) for _ in range(4000)]
    out = []
    size = 0
    while size < n_chars:
        w = rng.choice(words)
        out.append(w)
        size += len(w) + 1
    return " ".join(out)


def cached_corpus(cache_dir, name="corpus-v2.bin", n_chars=2_000_000):
    """Build the token file once and share it through the cache folder."""
    path = os.path.join(cache_dir, name)
    lock_dir = os.path.join(cache_dir, ".locks")
    os.makedirs(lock_dir, exist_ok=True)
    with SoftFileLock(os.path.join(lock_dir, name + ".lock")):
        if not os.path.exists(path):
            log.info("building %s", path)
            text = _synthesize(n_chars)
            table = {c: i for i, c in enumerate(CHARS)}
            np.fromiter((table[c] for c in text), dtype=np.uint8, count=len(text)).tofile(path)
    return np.memmap(path, dtype=np.uint8, mode="r")
