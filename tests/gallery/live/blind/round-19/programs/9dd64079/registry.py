import json
import os
import shutil

import torch

from locks import locked


class CheckpointRegistry:
    """Keeps index.json next to the checkpoints; evaluation jobs read the same directory."""

    def __init__(self, root, limit):
        self.root, self.limit = root, limit
        self.index = os.path.join(root, "index.json")
        self.lock_path = os.path.join(root, "index.lock")

    def _read(self):
        if not os.path.exists(self.index):
            return []
        with open(self.index) as f:
            return json.load(f)

    def _replace(self, entries):
        with open(self.index + ".new", "w") as f:
            json.dump(entries, f, indent=1)
        os.replace(self.index + ".new", self.index)

    def add(self, step, state, info):
        path = os.path.join(self.root, f"checkpoint-{step}")
        os.makedirs(path, exist_ok=True)
        torch.save(state, os.path.join(path, "model.pt"))
        with locked(self.lock_path):
            entries = self._read()
            entries.append({"step": step, "path": path, **info})
            self._replace(entries)
            if len(entries) > self.limit:
                self.prune()

    def prune(self):
        with locked(self.lock_path):
            entries = self._read()
            drop, keep = entries[: -self.limit], entries[-self.limit :]
            self._replace(keep)
        for e in drop:
            shutil.rmtree(e["path"], ignore_errors=True)
