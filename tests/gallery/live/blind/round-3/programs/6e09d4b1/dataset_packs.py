"""Feature packs: one file per pack, either plain or lzma-compressed (older exports)."""
import lzma
import os

import numpy as np


def export(path, seed, compressed, frames=120000, dim=24):
    rng = np.random.default_rng(seed)
    raw = (rng.standard_normal((frames, dim)) * 20).astype("int16").tobytes()
    if compressed:
        path += ".xz"
        with lzma.open(path, "wb", preset=0) as f:
            f.write(raw)
    else:
        with open(path, "wb") as f:
            f.write(raw)
    return path


def read(path, dim=24):
    if path.endswith(".xz"):
        with lzma.open(path, "rb") as f:
            raw = f.read()
    else:
        with open(path, "rb") as f:
            raw = f.read()
    return np.frombuffer(raw, dtype="int16").reshape(-1, dim)


def list_for_rank(root, rank, packs=2):
    os.makedirs(root, exist_ok=True)
    out = []
    for i in range(packs):
        n = rank * packs + i
        # packs 2 and 3 come from the first export
        out.append(export(os.path.join(root, f"pack{n:04d}"), n, compressed=2 <= n < 4))
    return out
