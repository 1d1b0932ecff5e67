import json
import os
import random

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info


class StreamingTokens(IterableDataset):
    def __init__(self, root, block_size, rank, world_size, shuffle=True, seed=42):
        self.root, self.block_size = root, block_size
        self.rank, self.world_size = rank, world_size
        self.shuffle, self.seed, self.epoch = shuffle, seed, 0
        self.chunks = json.load(open(os.path.join(root, "index.json")))["chunks"]

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        order = list(self.chunks)
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        mine = order[self.rank::self.world_size]
        info = get_worker_info()
        if info is not None:
            mine = mine[info.id::info.num_workers]
        for chunk in mine:
            arr = np.fromfile(os.path.join(self.root, chunk["file"]), dtype=np.int32)
            for i in range(0, len(arr) - self.block_size, self.block_size):
                yield torch.from_numpy(arr[i:i + self.block_size + 1].astype(np.int64))
