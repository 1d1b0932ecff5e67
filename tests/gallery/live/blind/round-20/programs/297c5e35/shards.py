import os
import threading
import time

import numpy as np
import torch
import webdataset as wds


def write_shard(path, seed, n=64):
    rng = np.random.default_rng(seed)
    with wds.TarWriter(path + ".part") as sink:
        for i in range(n):
            frames = int(rng.integers(40, 160))
            mel = rng.standard_normal((frames, 40)).astype(np.float32)
            sink.write({"__key__": f"{seed:04d}-{i:04d}", "mel.npy": mel, "cls": int(rng.integers(0, 12))})
    os.replace(path + ".part", path)


class Fetcher(threading.Thread):
    """Brings shards in one after the other while training already runs."""

    def __init__(self, folder, count, first=4, pause=8.0):
        super().__init__(name="fetcher", daemon=True)
        os.makedirs(folder, exist_ok=True)
        self.folder, self.count, self.first, self.pause = folder, count, first, pause

    def run(self):
        for i in range(self.count):
            write_shard(f"{self.folder}/{i:05d}.tar", i)
            if i >= self.first:
                time.sleep(self.pause)


def wait_for(folder, count, every=0.2):
    while True:
        have = sorted(f for f in os.listdir(folder) if f.endswith(".tar")) if os.path.isdir(folder) else []
        if len(have) >= count:
            return [f"{folder}/{f}" for f in have]
        time.sleep(every)


def collate(rows):
    size = max(len(r[0]) for r in rows)
    mel = torch.stack([torch.from_numpy(np.pad(r[0], ((0, size - len(r[0])), (0, 0)))) for r in rows])
    return mel, torch.tensor([int(r[1]) for r in rows])


def loader(urls, batches, seed):
    data = (
        wds.WebDataset(urls, resampled=True, nodesplitter=None, shardshuffle=False, seed=seed)
        .shuffle(64)
        .decode()
        .to_tuple("mel.npy", "cls")
        .batched(8, collation_fn=collate)
        .with_epoch(batches)
    )
    return wds.WebLoader(data, batch_size=None, num_workers=1)
