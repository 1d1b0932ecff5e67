import json
import os
import pathlib

import torch
import torch.distributed as dist
from torch.utils.data import IterableDataset


def write_demo_shards(root, n=24, rows=64):
    root = pathlib.Path(root)
    root.mkdir(parents=True, exist_ok=True)
    for i in range(n):
        path = root / f"part-{i:04d}.pt"
        if not path.exists():
            torch.save(torch.randn(rows, 16), path)


def get_files_and_lengths(root, cache_file):
    if os.path.exists(cache_file):
        with open(cache_file) as f:
            entries = json.load(f)
        return [e[0] for e in entries], [e[1] for e in entries]

    if dist.get_rank() == 0:
        print(f"scanning {root} ...", flush=True)
        entries = []
        for path in sorted(pathlib.Path(root).glob("*.pt")):
            entries.append((str(path), int(torch.load(path).shape[0])))
        os.makedirs(os.path.dirname(cache_file), exist_ok=True)
        tmp = cache_file + ".tmp"
        with open(tmp, "w") as f:
            json.dump(entries, f)
        os.replace(tmp, cache_file)
    dist.barrier()
    return get_files_and_lengths(root, cache_file)


class LatentDataset(IterableDataset):
    def __init__(self, root, cache_file):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.files, self.lengths = get_files_and_lengths(root, cache_file)

    def __iter__(self):
        for path in self.files[self.rank::self.world]:
            for row in torch.load(path):
                yield row
