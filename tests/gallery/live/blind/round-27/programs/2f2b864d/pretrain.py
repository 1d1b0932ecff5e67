import argparse
import random
import socket
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from bucketing import BucketizeBatchSampler, DistributedBatchSampler
from speech import UnitPredictor, Utterances, collate


def build_loader(dataset, rank, world_size):
    sampler = BucketizeBatchSampler(dataset.lengths, num_buckets=6, max_token_count=1600)
    sampler = DistributedBatchSampler(sampler, world_size, rank)
    return DataLoader(dataset, batch_sampler=sampler, collate_fn=collate)


def train_one_epoch(model, loader, optimizer, epoch, rank):
    model.train()
    total, frames = 0.0, 0
    for step, (feats, units) in enumerate(loader):
        logits = model(feats)
        loss = F.cross_entropy(logits.flatten(0, 1), units.flatten(), ignore_index=-100)
        time.sleep(0.25)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        total += loss.item() * feats.shape[0]
        frames += feats.shape[0]
        if step % 5 == 0:
            print(f"[rank {rank}] epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
    return {"loss_sum": total, "count": frames}


def worker(rank, world_size, port, args):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                            world_size=world_size, timeout=timedelta(minutes=30))
    torch.manual_seed(args.seed)
    random.seed(args.seed + rank)
    dataset = Utterances()
    model = DDP(UnitPredictor())
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        loader = build_loader(dataset, rank, world_size)
        stats = train_one_epoch(model, loader, optimizer, epoch, rank)
        gathered = [None] * world_size
        dist.all_gather_object(gathered, stats)
        if rank == 0:
            mean = sum(s["loss_sum"] for s in gathered) / sum(s["count"] for s in gathered)
            print(f"epoch {epoch} done: train loss {mean:.4f}", flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--world-size", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1338)
    args = parser.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(args.world_size, port, args), nprocs=args.world_size)


if __name__ == "__main__":
    main()
