import argparse
import itertools
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from data import BlockSampler, Conversations, collate
from draft import DraftModel, NoValidAnchorsError


def train_epoch(model, opt, loader, limit, epoch, rank):
    total, count, skipped = 0.0, 0, 0
    t0 = time.time()
    for i, (tokens, lengths) in enumerate(itertools.islice(loader, limit)):
        try:
            loss = model(tokens, lengths)
        except NoValidAnchorsError as err:
            skipped += 1
            print(f"[rank {rank}] {err}; skipped", flush=True)
            continue
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
        count += 1
        if rank == 0 and i % 10 == 0:
            print(f"epoch {epoch} it {i} loss {loss.item():.3f} {time.time() - t0:.1f}s", flush=True)
    return torch.tensor([total, count, skipped], dtype=torch.float64)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=1000)
    p.add_argument("--steps-per-epoch", type=int, default=60)
    p.add_argument("--batch", type=int, default=8)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    stats_group = dist.new_group()
    torch.manual_seed(100 + rank)
    model = DDP(DraftModel())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ds = Conversations()
    loader = DataLoader(ds, batch_sampler=BlockSampler(len(ds), args.batch, rank, world), collate_fn=collate)
    for epoch in range(args.epochs):
        stats = train_epoch(model, opt, loader, args.steps_per_epoch, epoch, rank)
        dist.all_reduce(stats, group=stats_group)
        if rank == 0:
            print(f"epoch {epoch} mean loss {stats[0] / stats[1]:.4f} skipped {int(stats[2])}", flush=True)


if __name__ == "__main__":
    main()
