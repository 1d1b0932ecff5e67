import json
import os

import torch


class ProgressTracker:
    def __init__(self, folder, bucket, every=2):
        self.folder, self.bucket, self.every = folder, bucket, every
        os.makedirs(os.path.join(folder, "importance"), exist_ok=True)
        self.steps = []

    def update(self, step, loss, features):
        self.steps.append({"step": step, "loss": loss})
        if step % self.every:
            return
        torch.save(features, os.path.join(self.folder, "importance", f"{step:06d}.pt"))
        with open(os.path.join(self.folder, "progress.json"), "w") as f:
            json.dump(self.steps, f)
        self.bucket.upload(self.folder, "experiment/run_0")
