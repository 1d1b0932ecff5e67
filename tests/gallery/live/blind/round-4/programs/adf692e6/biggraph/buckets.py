import os

import numpy as np
import torch


class Buckets:
    def __init__(self, root, rank, world, batch=1200):
        self.files = sorted(os.listdir(root))[rank::world]
        self.root, self.batch = root, batch

    def __iter__(self):
        for name in self.files:
            with open(os.path.join(self.root, name), "rb") as f:
                edges = np.frombuffer(f.read(), dtype=np.int32).reshape(-1, 3)
            for i in range(0, len(edges), self.batch):
                yield name, torch.from_numpy(edges[i:i + self.batch].astype(np.int64))
