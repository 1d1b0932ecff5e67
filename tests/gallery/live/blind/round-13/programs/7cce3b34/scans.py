import io
import os

import torch
from torch.utils.data import Dataset


class LazyScan:
    """A scan whose header is parsed on access and whose pixels are read when it is handed on."""

    def __init__(self, path):
        self.path = path
        self.fp = open(path, "rb")
        self.rows, self.cols = (int(v) for v in self.fp.readline().split())

    def load(self):
        raw = self.fp.read(self.rows * self.cols)
        if len(raw) < self.rows * self.cols:
            raise OSError(f"image file is truncated ({self.rows * self.cols - len(raw)} bytes not processed)")
        return torch.frombuffer(bytearray(raw), dtype=torch.uint8).reshape(self.rows, self.cols)

    def __getstate__(self):
        pixels = self.load()
        self.fp.close()
        return {"path": self.path, "rows": self.rows, "cols": self.cols, "pixels": pixels}

    def __setstate__(self, state):
        self.__dict__.update(state)


class ScanFolder(Dataset):
    def __init__(self, root):
        self.files = sorted(os.path.join(root, f) for f in os.listdir(root) if f.endswith(".pgm8"))
        with io.open(os.path.join(root, "labels.txt")) as fh:
            self.labels = [int(line) for line in fh]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return LazyScan(self.files[i]), self.labels[i]


def keep_scans(samples):
    scans, labels = zip(*samples)
    return list(scans), torch.tensor(labels)


def to_batch(scans):
    return torch.stack([s.pixels for s in scans]).float().div_(255).flatten(1)
