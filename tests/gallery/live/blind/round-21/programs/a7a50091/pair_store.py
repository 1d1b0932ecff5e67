"""Flat store of keypoint pairs: one blob, one index of byte offsets."""
import ctypes
import mmap
import os

import numpy as np

KPTS = 32
RECORD_BYTES = KPTS * 4 * 4          # x0 y0 x1 y1, float32
NO_DEPTH = 0xFFFFFFFF


def write_store(folder, pairs, seed):
    rng = np.random.default_rng(seed)
    index = np.empty(pairs, dtype=np.uint32)
    with open(os.path.join(folder, "pairs.bin"), "wb") as f:
        for i in range(pairs):
            has_depth = (i + 2) % 1219 != 0
            index[i] = f.tell() if has_depth else NO_DEPTH
            if has_depth:
                src = rng.random((KPTS, 2), dtype=np.float32)
                angle = rng.uniform(-0.5, 0.5)
                rot = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]], np.float32)
                dst = src @ rot.T + rng.normal(0, 0.01, (KPTS, 2)).astype(np.float32)
                f.write(np.concatenate([src, dst], 1).astype(np.float32).tobytes())
    np.save(os.path.join(folder, "index.npy"), index)


class PairStore:
    """Zero-copy reads straight from the mapped blob."""

    def __init__(self, folder):
        self.index = np.load(os.path.join(folder, "index.npy"))
        self._file = open(os.path.join(folder, "pairs.bin"), "r+b")
        self._map = mmap.mmap(self._file.fileno(), 0)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))

    def __len__(self):
        return len(self.index)

    def read(self, i):
        raw = ctypes.string_at(self._base + int(self.index[i]), RECORD_BYTES)
        return np.frombuffer(raw, dtype=np.float32).reshape(KPTS, 4)
