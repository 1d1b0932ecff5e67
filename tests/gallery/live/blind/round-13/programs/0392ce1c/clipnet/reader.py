import subprocess
import sys
from pathlib import Path

import numpy as np

TRANSCODER = Path(__file__).with_name("transcode.py")


class VideoReader:
    """Iterates over the frames of one clip through an external decoder process."""

    def __init__(self, path, size=(32, 32)):
        self.path = str(path)
        self.w, self.h = size
        self._nbytes = self.w * self.h * 3
        cmd = [sys.executable, str(TRANSCODER), "-i", self.path, "-s", f"{self.w}x{self.h}"]
        self._p = subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def read(self):
        buf = self._p.stdout.read(self._nbytes)
        if len(buf) < self._nbytes:
            return None
        return np.frombuffer(buf, dtype=np.uint8).reshape(self.h, self.w, 3)

    def frames(self):
        while (frame := self.read()) is not None:
            yield frame

    def close(self):
        self._p.stdout.close()
        self._p.wait()
        err = self._p.stderr.read()
        self._p.stderr.close()
        return err.decode(errors="replace")
