import time

import torch
from datasets import IterableDataset
from datasets.distributed import split_dataset_by_node
from torch.utils.data import DataLoader

FRAMES, MELS, VOCAB = 40, 20, 32
BASIS = torch.randn(160, MELS, generator=torch.Generator().manual_seed(3))


def read_shard(shards):
    for shard in shards:
        g = torch.Generator().manual_seed(shard)
        for i in range(20000):
            yield {
                "uid": f"{shard:05d}-{i:06d}",
                "seed": int(torch.randint(0, 2**31 - 1, (1,), generator=g)),
                "text": torch.randint(1, VOCAB, (8,), generator=g).tolist(),
            }


def extract_features(example):
    g = torch.Generator().manual_seed(example["seed"])
    wave = torch.randn(FRAMES, 160, generator=g)
    time.sleep(0.11)
    return {"features": (wave @ BASIS).abs().log1p().tolist(), "labels": example["text"]}


def collate(rows):
    return {
        "features": torch.tensor([r["features"] for r in rows]),
        "labels": torch.tensor([r["labels"] for r in rows]),
    }


def build_loader(rank, world_size, batch_size=4):
    stream = IterableDataset.from_generator(read_shard, gen_kwargs={"shards": list(range(4))})
    stream = stream.map(extract_features, remove_columns=["uid", "seed", "text"])
    stream = split_dataset_by_node(stream, rank=rank, world_size=world_size)
    return DataLoader(stream, batch_size=batch_size, collate_fn=collate, num_workers=1, prefetch_factor=2)
