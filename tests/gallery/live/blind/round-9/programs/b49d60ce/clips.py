import glob
import io
import os
import zlib

import numpy as np
import torch
from torch.utils.data import Dataset


class ClipFolder(Dataset):
    """One compressed clip per file, NAME_LABEL.z; each rank reads its own contiguous part of the folder."""

    def __init__(self, root, rank, world):
        files = sorted(glob.glob(os.path.join(root, "*.z")))
        per = len(files) // world
        self.files = files[rank * per:(rank + 1) * per]

    def __len__(self):
        return len(self.files)

    def decode(self, path):
        with open(path, "rb") as f:
            raw = zlib.decompress(f.read())
        clip = np.load(io.BytesIO(raw)).astype(np.float32)
        return torch.from_numpy((clip - clip.mean()) / (clip.std() + 1e-5))

    def __getitem__(self, i):
        path = self.files[i]
        try:
            clip = self.decode(path)
        except (zlib.error, ValueError, OSError):
            return self[(i + 1) % len(self)]
        label = int(os.path.basename(path).split("_")[1].split(".")[0])
        return clip, label
