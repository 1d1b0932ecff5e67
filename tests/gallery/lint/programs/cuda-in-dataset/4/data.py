import torch
from torch.utils.data import IterableDataset


class Shard(IterableDataset):
    def __init__(self, path):
        self.path = path

    def __iter__(self):
        with open(self.path, "rb") as f:
            while block := f.read(64):
                yield torch.frombuffer(block, dtype=torch.uint8).to(device="cuda", non_blocking=True)
