import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator, debug_launcher
from torch.utils.data import DataLoader

from shards import ObjectStore, ShardCache, StreamingShards, WithinShardShuffle, assign_by_language


def build_classifier():
    return nn.Sequential(nn.Linear(24, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 2))


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--samples-per-epoch", type=int, default=320)
    p.add_argument("--cache-limit", type=int, default=12)
    p.add_argument("--processes", type=int, default=3)
    return p.parse_args()


def training_function(args):
    accelerator = Accelerator(cpu=True)
    rank, world = accelerator.process_index, accelerator.num_processes
    torch.manual_seed(5)
    shard_ids = assign_by_language(world)[rank]
    cache = ShardCache(ObjectStore(), args.cache_limit)
    dataset = StreamingShards(shard_ids, cache)
    loader = DataLoader(dataset, batch_size=args.batch_size,
                        sampler=WithinShardShuffle(dataset, args.samples_per_epoch, seed=rank))
    model = build_classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model, optimizer = accelerator.prepare(model, optimizer)
    print(f"rank {rank}: {len(shard_ids)} shards", flush=True)

    step = 0
    for epoch in range(args.epochs):
        started = time.time()
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            time.sleep(0.05)
            step += 1
            if step % 10 == 0:
                mean = accelerator.reduce(loss.detach(), reduction="mean")
                if rank == 0:
                    print(f"epoch {epoch} step {step} loss {mean.item():.4f}", flush=True)
        print(f"rank {rank}: epoch {epoch} took {time.time() - started:.1f}s", flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    args = parse_args()
    debug_launcher(training_function, args=(args,), num_processes=args.processes)
