import os
import time

import torch


class ExportDir:
    def __init__(self, root, keep):
        self.root, self.keep = root, keep
        os.makedirs(root, exist_ok=True)

    def path(self, step):
        return os.path.join(self.root, f"weights-{step}.pt")

    def publish(self, step, state):
        tmp = self.path(step) + ".part"
        torch.save(state, tmp)
        os.replace(tmp, self.path(step))
        self._rotate()

    def _rotate(self):
        names = sorted(n for n in os.listdir(self.root) if n.endswith(".pt"))
        for name in names[: -self.keep]:
            os.remove(os.path.join(self.root, name))

    def fetch(self, step, poll=0.5):
        path = self.path(step)
        while not os.path.exists(path):
            time.sleep(poll)
        return torch.load(path, weights_only=True)
