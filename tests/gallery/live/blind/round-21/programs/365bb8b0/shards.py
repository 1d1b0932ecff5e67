"""Stages this rank's tar shards on local scratch and reads them with webdataset."""
import os
import tempfile
import time

import torch
import webdataset as wds

TOTAL_SHARDS = 8


def stage(rank, world_size):
    folder = tempfile.mkdtemp(prefix=f"tags_r{rank}_")
    urls = []
    for shard in range(rank, TOTAL_SHARDS, world_size):
        url = os.path.join(folder, f"tags-{shard:04d}.tar")
        g = torch.Generator().manual_seed(shard)
        with wds.TarWriter(url) as sink:
            for i in range(64):
                x = torch.randn(32, generator=g)
                sink.write({"__key__": f"{shard:04d}{i:06d}", "x.pth": x, "y.cls": int(x[:8].argmax())})
        time.sleep(1.5)
        urls.append(url)
    return urls


def loader(urls, batch_size):
    ds = (wds.WebDataset(urls, resampled=True, shardshuffle=False, nodesplitter=None)
          .decode()
          .to_tuple("x.pth", "y.cls")
          .batched(batch_size))
    return wds.WebLoader(ds, batch_size=None, num_workers=0)
