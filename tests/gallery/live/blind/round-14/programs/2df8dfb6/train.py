import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from corpus import VOCAB, PackedCorpus


class TinyLM(nn.Module):
    def __init__(self, dim=96, layers=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        block = nn.TransformerEncoderLayer(dim, 4, 4 * dim, batch_first=True, dropout=0.0)
        self.blocks = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.size(1))
        return self.head(self.blocks(self.embed(tokens), mask=mask, is_causal=True))


def open_stage(args, rank, seq_len):
    corpus = PackedCorpus(args.cache_dir, seq_len, args.batch_size, rank, read_ahead=seq_len > args.in_memory_len)
    if rank == 0:
        corpus.open()
    dist.barrier()
    if rank != 0:
        corpus.open()
    return corpus


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stages", default="32:100,64:1000")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--in-memory-len", type=int, default=32)
    parser.add_argument("--cache-dir", default=os.environ.get("CACHE_DIR", "/tmp/lm-cache"))
    args = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(TinyLM())
    optim = torch.optim.AdamW(model.parameters(), lr=3e-4)
    step = 0
    for spec in args.stages.split(","):
        seq_len, steps = map(int, spec.split(":"))
        corpus = open_stage(args, rank, seq_len)
        if rank == 0:
            print(f"stage seq_len={seq_len}: {steps} steps")
        start = time.time()
        for _ in range(steps):
            tokens = torch.from_numpy(corpus.next_batch()).long()
            logits = model(tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            loss.backward()
            optim.step()
            optim.zero_grad()
            step += 1
            if rank == 0 and step % 20 == 0:
                print(f"step {step} loss {loss.item():.3f} ({time.time() - start:.1f}s)")
        corpus.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
