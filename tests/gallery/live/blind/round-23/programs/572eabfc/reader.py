import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

DECODER = str(Path(__file__).with_name("decoder.py"))


class ClipReader:
    def __init__(self, path, frames=12, side=16):
        self.shape = (frames, side, side)
        self.nbytes = frames * side * side
        cmd = [sys.executable, "-S", "-E", DECODER, str(path), "--frames", str(frames), "--side", str(side)]
        self.proc = subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def read(self):
        data = self.proc.stdout.read(self.nbytes)
        return np.frombuffer(data, dtype=np.uint8).reshape(self.shape)

    def close(self):
        self.proc.stdout.close()
        code = self.proc.wait()
        if code:
            raise IOError(self.proc.stderr.read().decode())
        self.proc.stderr.close()


class ClipFolder(Dataset):
    def __init__(self, root):
        self.root = Path(root)
        self.index = json.loads((self.root / "index.json").read_text())

    def __len__(self):
        return len(self.index)

    def __getitem__(self, i):
        entry = self.index[i]
        reader = ClipReader(self.root / entry["file"])
        frames = reader.read().astype(np.float32) / 255.0
        reader.close()
        return torch.from_numpy(frames), entry["label"]
