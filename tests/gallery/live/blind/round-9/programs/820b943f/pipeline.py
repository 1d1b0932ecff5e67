import urllib.request

import torch
import webdataset as wds
from torch.utils.data import DataLoader


def _open(url):
    return urllib.request.urlopen(url, timeout=60)


def to_pair(sample):
    return torch.from_numpy(sample["npy"]), int(sample["cls"])


def url_opener(data, handler=wds.reraise_exception):
    for item in data:
        with _open(item["url"]) as stream:
            yield dict(item, stream=stream)



def make_loader(base, shards, batch, steps, seed, workers=1):
    urls = [f"{base}/shard-{i:06d}.tar" for i in shards]
    ds = wds.DataPipeline(
        wds.ResampledShards(urls, seed=seed),
        url_opener,
        wds.tariterators.tar_file_expander,
        wds.tariterators.group_by_keys,
        wds.shuffle(200),
        wds.decode(),
        wds.map(to_pair),
        wds.batched(batch, partial=False),
    ).with_epoch(steps)
    return DataLoader(ds, batch_size=None, num_workers=workers, persistent_workers=workers > 0, prefetch_factor=4 if workers else None)
