import io
import json
import os
import tarfile

import numpy as np
import torch
import webdataset as wds

N_FEATS, N_TOKENS = 20, 32


def write_cut_shards(folder, n_shards=8, cuts_per_shard=24):
    rng = np.random.default_rng(3)
    frames = np.sort(np.concatenate([rng.integers(40, 90, n_shards * cuts_per_shard // 2),
                                     rng.integers(500, 700, n_shards * cuts_per_shard // 2)]))
    for s in range(n_shards):
        with tarfile.open(os.path.join(folder, f"cuts-{s:04d}.tar"), "w") as tar:
            for i, t in enumerate(frames[s * cuts_per_shard:(s + 1) * cuts_per_shard]):
                npy = io.BytesIO()
                np.save(npy, rng.normal(size=(t, N_FEATS)).astype(np.float16))
                text = json.dumps(rng.integers(1, N_TOKENS, max(4, t // 25)).tolist()).encode()
                for ext, data in (("npy", npy.getvalue()), ("json", text)):
                    info = tarfile.TarInfo(f"cut{s:02d}{i:03d}.{ext}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))


def split_by_rank(urls):
    urls = list(urls)
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    per_rank = len(urls) // world
    yield from urls[rank * per_rank:(rank + 1) * per_rank]


def collate(samples):
    feats = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(f).float() for f, _ in samples], batch_first=True)
    tokens = torch.nn.utils.rnn.pad_sequence([torch.tensor(t) for _, t in samples], batch_first=True)
    return feats, torch.tensor([len(f) for f, _ in samples]), tokens, torch.tensor([len(t) for _, t in samples])


def make_loader(folder, batch_size=4):
    urls = sorted(os.path.join(folder, f) for f in os.listdir(folder))
    dataset = (wds.WebDataset(urls, nodesplitter=split_by_rank, shardshuffle=False)
               .decode().to_tuple("npy", "json").repeat())
    return torch.utils.data.DataLoader(dataset.batched(batch_size, collation_fn=collate), batch_size=None)
