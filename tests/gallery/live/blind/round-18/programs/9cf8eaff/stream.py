import zlib

import torch
from datasets import load_dataset
from torch.utils.data import DataLoader, IterableDataset

from corpus import stage_files


class PackedStream(IterableDataset):
    """Endless stream of fixed length token blocks."""

    def __init__(self, files, seq_len, vocab):
        self.docs = load_dataset("json", data_files=files, split="train", streaming=True)
        self.seq_len = seq_len
        self.vocab = vocab

    def encode(self, text):
        return [zlib.crc32(w.encode()) % (self.vocab - 1) + 1 for w in text.split()] + [0]

    def __iter__(self):
        pending = []
        while True:
            for doc in self.docs:
                pending.extend(self.encode(doc["text"]))
                while len(pending) > self.seq_len:
                    yield torch.tensor(pending[: self.seq_len + 1])
                    pending = pending[self.seq_len:]


def stage_loader(root, stage, cfg, rank, world):
    files = stage_files(root, stage)[rank::world]
    data = PackedStream(files, cfg["seq_len"], cfg["vocab"])
    return DataLoader(data, batch_size=cfg["batch_size"], num_workers=cfg["num_workers"], prefetch_factor=4)
