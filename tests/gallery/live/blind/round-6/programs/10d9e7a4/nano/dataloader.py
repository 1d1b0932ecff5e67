from collections import deque

import pyarrow.parquet as pq
import torch

from nano.shards import list_parquet_files


def encode(text):
    return [256] + list(text.encode())


def document_batches(folder, split, rank, world, resume=None, size=32):
    paths = list_parquet_files(folder)
    paths = paths[:-1] if split == "train" else paths[-1:]
    pq_idx = resume["pq_idx"] if resume else 0
    rg_idx = resume["rg_idx"] if resume else None
    while True:
        while pq_idx < len(paths):
            pf = pq.ParquetFile(paths[pq_idx])
            if rg_idx is not None:
                base = rg_idx // world + 1
                rg = base * world + rank
                rg_idx = None
            else:
                rg = rank
            while rg < pf.num_row_groups:
                docs = pf.read_row_group(rg).column("text").to_pylist()
                for i in range(0, len(docs), size):
                    yield docs[i:i + size], {"pq_idx": pq_idx, "rg_idx": rg}
                rg += world
            pq_idx += 1


def tokenizing_loader(B, T, folder, split, rank, world, resume=None):
    need = B * T + 1
    buf = deque()
    batches = document_batches(folder, split, rank, world, resume)
    while True:
        while len(buf) < need:
            docs, state = next(batches)
            for d in docs:
                buf.extend(encode(d))
        toks = torch.tensor([buf.popleft() for _ in range(need)])
        yield toks[:-1].view(B, T), toks[1:].view(B, T), state
