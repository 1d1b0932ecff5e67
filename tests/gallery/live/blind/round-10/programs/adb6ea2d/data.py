import glob
import io
import os
import random
import threading
import time

import numpy as np
import torch
import webdataset as wds


class ShardIndex:
    """Keeps track of the shards that have arrived so far."""

    def __init__(self, root, rank, world_size, poll=2.0):
        self.root, self.rank, self.world_size, self.poll = root, rank, world_size, poll
        self.lock = threading.Lock()
        self.mine = []
        while not self.refresh():
            time.sleep(0.2)
        threading.Thread(target=self._watch, name="shard-watch", daemon=True).start()

    def refresh(self):
        found = sorted(glob.glob(os.path.join(self.root, "cap-*.tar")))
        mine = found[self.rank::self.world_size]
        with self.lock:
            self.mine = mine
        return len(mine)

    def _watch(self):
        while True:
            time.sleep(self.poll)
            self.refresh()

    def snapshot(self):
        with self.lock:
            return list(self.mine)


def decode(sample):
    img = torch.from_numpy(np.load(io.BytesIO(sample["npy"])))
    return img, int(sample["cls"])


def endless(index, batch, seed):
    rng = random.Random(seed)
    while True:
        shards = index.snapshot()
        rng.shuffle(shards)
        for url in shards[:4]:
            pipe = wds.DataPipeline(wds.SimpleShardList([url]), wds.tarfile_to_samples(), wds.map(decode))
            items = list(pipe)
            rng.shuffle(items)
            for i in range(0, len(items) - batch + 1, batch):
                imgs, labels = zip(*items[i:i + batch])
                yield torch.stack(imgs), torch.tensor(labels)
