import io
import os
import re

import torch


def usage(root):
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(root) for f in files)


class ShardStore:
    """Keeps this rank's shards on its own scratch disk."""

    def __init__(self, root, quota_mb=17.0, keep=2):
        self.root, self.dir = root, os.path.join(root, "shards")
        self.quota = int(quota_mb * 2 ** 20)
        self.keep = keep
        os.makedirs(self.dir, exist_ok=True)

    def steps(self):
        found = (re.fullmatch(r"step(\d+)\.pt", n) for n in os.listdir(self.dir))
        return sorted(int(m.group(1)) for m in found if m)

    def path(self, step):
        return os.path.join(self.dir, f"step{step}.pt")

    def save(self, step, state):
        buf = io.BytesIO()
        torch.save(state, buf)
        if usage(self.root) + buf.tell() > self.quota:
            raise OSError(28, "No space left on scratch", self.path(step))
        with open(self.path(step) + ".tmp", "wb") as f:
            f.write(buf.getbuffer())
        os.replace(self.path(step) + ".tmp", self.path(step))
        for old in self.steps()[:-self.keep]:
            os.remove(self.path(old))

    def load_latest(self):
        steps = self.steps()
        if not steps:
            return None
        return torch.load(self.path(steps[-1]))
