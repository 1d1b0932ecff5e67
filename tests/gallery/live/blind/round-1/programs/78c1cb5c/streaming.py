import io
import subprocess

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info


def gopen(url):
    """pipe:-style reader, as in our tar pipeline."""
    proc = subprocess.Popen(["curl", "-s", "-f", "-L", url], stdout=subprocess.PIPE)
    data = proc.stdout.read()
    if proc.wait() != 0:
        raise IOError(f"{url}: curl exit {proc.returncode}")
    return data


class ShardStream(IterableDataset):
    def __init__(self, endpoint, bucket, shards, seed=0):
        self.urls = [f"{endpoint}/{bucket}/shard-{i:05d}.npy" for i in range(shards)]
        self.seed = seed

    def __iter__(self):
        info = get_worker_info()
        wid, n = (info.id, info.num_workers) if info else (0, 1)
        rng = np.random.default_rng(self.seed + wid)
        urls = self.urls[wid::n]
        while True:
            rng.shuffle(urls)
            for url in urls:
                block = np.load(io.BytesIO(gopen(url)))
                for row in rng.permutation(len(block)):
                    x = torch.from_numpy(block[row])
                    yield x, (x[0] > 0).long()
