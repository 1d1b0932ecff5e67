import io
import os
import time

import numpy as np
import torch
import webdataset as wds


def write_shards(folder, prefix, count, samples):
    rng = np.random.default_rng(len(prefix))
    for k in range(count):
        with wds.TarWriter(os.path.join(folder, f"{prefix}-{k:04d}.tar")) as sink:
            for i in range(samples):
                label = int(rng.integers(0, 5))
                x = rng.normal(size=24).astype("float32")
                x[label] += 1.5
                buffer = io.BytesIO()
                np.save(buffer, x)
                sink.write({"__key__": f"{prefix}{k:04d}{i:05d}", "x.npy": buffer.getvalue(), "y.cls": str(label)})


def unpack(sample):
    time.sleep(0.01)
    return torch.from_numpy(sample[0]), sample[1]


def train_loader(folder, batch_size=8):
    urls = sorted(os.path.join(folder, n) for n in os.listdir(folder) if n.startswith("train-"))
    data = (wds.WebDataset(urls, resampled=True, shardshuffle=False, nodesplitter=wds.split_by_node)
            .shuffle(100).decode().to_tuple("x.npy", "y.cls").map(unpack).batched(batch_size, partial=False))
    return wds.WebLoader(data, batch_size=None, num_workers=1, persistent_workers=True).with_epoch(150)


def val_loader(folder, batch_size=8):
    data = (wds.WebDataset(os.path.join(folder, "val-0000.tar"), shardshuffle=False, nodesplitter=None)
            .decode().to_tuple("x.npy", "y.cls").batched(batch_size))
    return torch.utils.data.DataLoader(data, batch_size=None, num_workers=0)
