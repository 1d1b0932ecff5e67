import os
import urllib.request

import numpy as np
import torch
from torch.utils.data import Dataset


class RemoteImages(Dataset):
    def __init__(self, n=100000):
        self.n = n
        self.base = f"http://127.0.0.1:{os.environ['STORE_PORT']}/train"

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        with urllib.request.urlopen(f"{self.base}/{i:08d}.raw", timeout=120) as r:
            raw = np.frombuffer(r.read(), dtype=np.uint8)
        img = torch.from_numpy(raw[: 3 * 64 * 64].astype("float32")).view(3, 64, 64) / 255
        return img, img.flip(-1)
