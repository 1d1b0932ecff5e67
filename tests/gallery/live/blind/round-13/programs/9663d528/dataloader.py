from collections import deque

import pyarrow.parquet as pq
import torch

from corpus import list_files


class ByteTokenizer:
    bos = 256
    vocab_size = 257

    def encode(self, texts):
        return [[self.bos, *t.encode()] for t in texts]


def document_batches(root, split, rank, world_size, size=32):
    """Endless iterator over documents; row groups are strided over the ranks."""
    while True:
        for path in list_files(root, split):
            pf = pq.ParquetFile(path)
            for rg in range(rank, pf.num_row_groups, world_size):
                docs = pf.read_row_group(rg).column("text").to_pylist()
                for i in range(0, len(docs), size):
                    yield docs[i:i + size]


def token_batches(root, split, B, T, rank, world_size):
    tokenizer = ByteTokenizer()
    need = B * T + 1
    tokens = deque()
    docs = document_batches(root, split, rank, world_size)
    while True:
        while len(tokens) < need:
            for ids in tokenizer.encode(next(docs)):
                tokens.extend(ids)
        row = torch.tensor([tokens.popleft() for _ in range(need)])
        yield row[:-1].view(B, T), row[1:].view(B, T)
