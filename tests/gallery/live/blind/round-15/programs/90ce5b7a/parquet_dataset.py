import os
import pickle

import numpy as np
import pyarrow.parquet as pq
import torch
import torch.distributed as dist
from torch.utils.data import IterableDataset


def get_parquet_files_and_length(path):
    cache_dir = os.path.join(path, "map_style_cache")
    cache_file = os.path.join(cache_dir, "file_info.pkl")
    if os.path.exists(cache_file):
        with open(cache_file, "rb") as f:
            return pickle.load(f)
    if dist.get_rank() == 0:
        names, lengths = [], []
        for root, _, files in os.walk(path):
            for name in sorted(files):
                if name.endswith(".parquet"):
                    full = os.path.join(root, name)
                    names.append(full)
                    lengths.append(pq.ParquetFile(full).metadata.num_rows)
        order = np.argsort(names)
        info = [names[i] for i in order], [lengths[i] for i in order]
        os.makedirs(cache_dir, exist_ok=True)
        with open(cache_file + ".tmp", "wb") as f:
            pickle.dump(info, f)
        os.replace(cache_file + ".tmp", cache_file)
    dist.barrier()
    return get_parquet_files_and_length(path)


class LatentsParquetIterStyleDataset(IterableDataset):
    def __init__(self, path, rank, world, batch_size, seed=42):
        self.files, self.lengths = get_parquet_files_and_length(path)
        self.rank, self.world = rank, world
        self.batch_size = batch_size
        self.rng = np.random.default_rng(seed)

    def __iter__(self):
        while True:
            order = self.rng.permutation(len(self.files))[self.rank::self.world]
            for i in order:
                column = pq.read_table(self.files[i], columns=["latent"])["latent"]
                rows = np.stack([np.frombuffer(v.as_py(), dtype=np.float32) for v in column])
                for s in range(0, len(rows) - self.batch_size + 1, self.batch_size):
                    yield torch.from_numpy(rows[s:s + self.batch_size])
