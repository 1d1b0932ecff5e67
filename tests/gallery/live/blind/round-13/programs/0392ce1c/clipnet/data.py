import random
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import IterableDataset

from .reader import VideoReader


def prepare_clips(root, count, size=32, seed=7):
    root = Path(root)
    root.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for i in range(count):
        dst = root / f"clip_{i:04d}.npz"
        n = int(rng.integers(380, 420)) if i != 13 else 2400
        dts = np.arange(n, dtype=np.int64)
        if i % 9 == 4:
            # variable frame rate capture from the second camera
            dts = dts // 3
        frames = rng.integers(0, 255, size=(n, size * size * 3), dtype=np.uint8)
        np.savez(dst, frames=frames, dts=dts)


class ClipFrames(IterableDataset):
    """Endless stream of (frame batch, clip label); clips are divided over the ranks."""

    def __init__(self, root, rank, world_size, batch=16, size=32, seed=0):
        self.files = sorted(Path(root).glob("*.npz"))[rank::world_size]
        self.batch, self.size = batch, size
        self.rng = random.Random(seed)

    def __iter__(self):
        while True:
            for path in self.files:
                label = int(path.stem.split("_")[1])
                reader = VideoReader(path, (self.size, self.size))
                chunk = []
                for frame in reader.frames():
                    chunk.append(frame)
                    if len(chunk) == self.batch:
                        x = torch.from_numpy(np.stack(chunk)).permute(0, 3, 1, 2).float().div_(255)
                        yield x, torch.full((self.batch,), label % 6)
                        chunk = []
                reader.close()
