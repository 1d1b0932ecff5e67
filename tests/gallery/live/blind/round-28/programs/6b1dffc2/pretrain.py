import argparse
import os
import tempfile
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from heartbeat import Heartbeat
from storage import Uploader, write_checkpoint

VOCAB = 128


class TinyLM(nn.Module):
    def __init__(self, dim=32, layers=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        layer = nn.TransformerEncoderLayer(dim, 2, 64, batch_first=True, dropout=0.0)
        self.blocks = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.head(self.blocks(self.embed(tokens), mask=mask, is_causal=True))


def lengths(rank, step, world):
    """Every rank gets long, middle and short batches in turn."""
    return (48, 24, 12)[(step + rank) % world]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--save-every", type=int, default=100)
    p.add_argument("--iterations", type=int, default=100000)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    model = DDP(TinyLM())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    beat = Heartbeat(rank)
    scratch = tempfile.mkdtemp(prefix="ckpt-")
    slow_tier = tempfile.mkdtemp(prefix="tier-")
    uploader = Uploader(slow_tier)

    for it in range(1, args.iterations + 1):
        beat.mark("training", it)
        length = lengths(rank, it, world)
        tokens = torch.randint(0, VOCAB, (4, length))
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.004 * length)
        if it % 20 == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            if rank == 0:
                print(f"iteration {it} loss {mean.item() / world:.4f}", flush=True)
        if it % args.save_every == 0:
            beat.mark("checkpointing", it)
            if rank == 0:
                path = write_checkpoint(model.module, optimizer, os.path.join(scratch, f"it{it}.pt"))
                for old in sorted(os.listdir(slow_tier))[:-1]:
                    os.remove(os.path.join(slow_tier, old))
                uploader.submit(path)
                print(f"saved iteration {it}", flush=True)
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
