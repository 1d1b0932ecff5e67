import time

import torch
from datasets import Dataset, IterableDataset

VOCAB = 160


def stream_samples(shards):
    for shard in shards:
        g = torch.Generator().manual_seed(1000 + shard)
        for _ in range(50000):
            ids = torch.randint(3, VOCAB, (18,), generator=g)
            yield {"input_ids": ids.tolist(), "labels": ids.tolist()}


def pack(example):
    time.sleep(0.01)
    return example


def train_stream(num_shards=8):
    stream = IterableDataset.from_generator(stream_samples, gen_kwargs={"shards": list(range(num_shards))})
    return stream.map(pack).shuffle(seed=3, buffer_size=64)


def eval_set(rows=240):
    g = torch.Generator().manual_seed(77)
    ids = torch.randint(3, VOCAB, (rows, 18), generator=g).tolist()
    return Dataset.from_dict({"input_ids": ids, "labels": ids})


def collate(rows):
    return {k: torch.tensor([r[k] for r in rows]) for k in ("input_ids", "labels")}
