import os
import subprocess
import sys

import numpy as np
import torch
from torch.utils.data import Dataset

FRAMES, SIDE = 4, 8
CLIP_BYTES = FRAMES * SIDE * SIDE * 3


def build_manifest(total=6000):
    """The first half of the archive was recorded as mp4, the rest as mkv."""
    return [f"clip_{i:05d}.{'mp4' if i < total // 2 else 'mkv'}" for i in range(total)]


class DecoderProcess:
    def __init__(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "frame_decoder.py")
        self.proc = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def read_clip(self, name):
        self.proc.stdin.write(name.encode() + b"\n")
        self.proc.stdin.flush()
        raw = self.proc.stdout.read(CLIP_BYTES)
        if len(raw) < CLIP_BYTES:
            raise RuntimeError(self.proc.stderr.read().decode())
        return np.frombuffer(raw, dtype=np.uint8).reshape(FRAMES, SIDE, SIDE, 3)


class ClipDataset(Dataset):
    def __init__(self, names):
        self.names = names
        self.decoder = None

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        if self.decoder is None:
            self.decoder = DecoderProcess()
        frames = self.decoder.read_clip(self.names[index])
        clip = torch.from_numpy(frames.copy()).float() / 255.0
        return clip.flatten(), index % 10


def shard(names, rank, world):
    per_rank = len(names) // world
    return names[rank * per_rank:(rank + 1) * per_rank]
