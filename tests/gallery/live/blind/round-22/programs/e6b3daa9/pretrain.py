import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from corpus import VOCAB, PackedCorpus
from table_cache import TableCache


class TinyBiasLM(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, ids, bias):
        x = self.emb(ids)
        q, k, v = self.qkv(x).chunk(3, -1)
        att = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5 + bias
        att = att.masked_fill(torch.ones_like(bias).triu(1).bool(), float("-inf"))
        return self.out(x + att.softmax(-1) @ v)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(minutes=40))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(TinyBiasLM())
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    tables = TableCache(os.environ["TABLE_CACHE"])
    corpus = PackedCorpus(rank)
    dist.barrier()
    for step in range(5000):
        ids = corpus.batch(step)
        bias = tables.get(ids.shape[1])
        logits = model(ids, bias)
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.1)
        if rank == 0 and step % 10 == 0:
            print(f"step {step:5d} len {ids.shape[1]:4d} loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
