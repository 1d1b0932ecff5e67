"""Train on all ranks of this machine; starts its ranks by itself."""

import argparse
import multiprocessing
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def loader(rows, workers):
    data = TensorDataset(torch.arange(rows * 4).reshape(rows, 4) % 7 / 7)
    return DataLoader(data, batch_size=8, sampler=DistributedSampler(data), num_workers=workers, persistent_workers=workers > 0)


def train(rank, args):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(args.ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(args.port))
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches, checks = loader(args.rows, args.workers), loader(args.rows, args.workers)
    for epoch in range(args.epochs):
        for (batch,) in batches:
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            scores = [model.module(batch).mean().item() for (batch,) in checks]
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} score {sum(scores) / len(scores):.4f}", flush=True)
        time.sleep(args.pause)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rows", type=int, default=160)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--port", type=int, default=29533)
    args = parser.parse_args()
    afresh = multiprocessing.get_context("spawn")
    ranks = [afresh.Process(target=train, args=(rank, args)) for rank in range(args.ranks)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    raise SystemExit(max(rank.exitcode for rank in ranks))


if __name__ == "__main__":
    main()
