import argparse
import socket
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.algorithms.model_averaging.averagers as averagers
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F

from packing import DocumentSource, PackedBatches


class BigramNet(nn.Module):
    def __init__(self, vocab=64, dim=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, vocab))

    def forward(self, ids):
        return self.ff(self.emb(ids))


@torch.no_grad()
def held_out_loss(model, chunks=30):
    g = torch.Generator().manual_seed(77)
    total = torch.zeros(2)
    for _ in range(chunks):
        ids = torch.randint(0, 64, (128,), generator=g)
        total += torch.tensor([F.cross_entropy(model(ids[:-1]), ids[1:]).item(), 1.0])
        time.sleep(0.2)
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def run(rank, world_size, port, args):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                            world_size=world_size, timeout=timedelta(minutes=30))
    torch.manual_seed(0)
    model = BigramNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    averager = averagers.PeriodicModelAverager(period=args.period, warmup_steps=args.period)
    batches = PackedBatches(DocumentSource(rank))
    tokens, began = 0, time.time()
    for step, ids in enumerate(batches, 1):
        loss = F.cross_entropy(model(ids[:-1]), ids[1:])
        time.sleep(0.0008 * len(ids))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        averager.average_parameters(model.parameters())
        tokens += len(ids)
        if step % 10 == 0:
            print(f"rank {rank} step {step} loss {loss.item():.4f} tokens {tokens} "
                  f"{step / (time.time() - began):.2f} steps/s", flush=True)
        if step % 120 == 0:
            value = held_out_loss(model)
            if rank == 0:
                print(f"step {step} held-out loss {value:.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--period", type=int, default=4)
    parser.add_argument("--world-size", type=int, default=3)
    args = parser.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(run, args=(args.world_size, port, args), nprocs=args.world_size)


if __name__ == "__main__":
    main()
