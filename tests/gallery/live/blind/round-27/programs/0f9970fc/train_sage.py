import argparse
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.rpc as rpc
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from kvstore import FeatureClient, load_part
from partition import build_graph, node_split


class SAGE(nn.Module):
    def __init__(self, dim=16, hidden=32, classes=6):
        super().__init__()
        self.inner = nn.Linear(2 * dim, hidden)
        self.out = nn.Linear(hidden, classes)

    def forward(self, own, around):
        return self.out(torch.relu(self.inner(torch.cat([own, around.mean(dim=1)], dim=-1))))


def sample_block(neighbors, seeds, fanout, gen):
    columns = torch.randint(0, neighbors.shape[1], (len(seeds), fanout), generator=gen)
    return neighbors[seeds].gather(1, columns)


def train_epoch(model, optimizer, client, neighbors, labels, seeds, steps, batch_size, gen, report):
    start = time.time()
    for step in range(steps):
        batch = seeds[torch.randint(0, len(seeds), (batch_size,), generator=gen)]
        block = sample_block(neighbors, batch, 6, gen)
        feats = client.gather(torch.cat([batch, block.reshape(-1)]))
        own, around = feats[:batch_size], feats[batch_size:].view(batch_size, 6, -1)
        loss = nn.functional.cross_entropy(model(own, around), labels[batch])
        time.sleep(0.08)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            report(step, loss.item(), 10 * batch_size / (time.time() - start))
            start = time.time()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n-epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=12)
    parser.add_argument("--warmup-steps", type=int, default=60)
    args = parser.parse_args()

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    book, neighbors, labels, train_nodes = build_graph()
    load_part(rank, book)
    rpc.init_rpc(
        f"part{rank}", rank=rank, world_size=world,
        rpc_backend_options=rpc.TensorPipeRpcBackendOptions(num_worker_threads=8, rpc_timeout=600, _transports=["uv"]),
    )
    client = FeatureClient(rank, book)
    torch.manual_seed(1)
    gen = torch.Generator().manual_seed(rank)
    model = DDP(SAGE())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def reporter(tag):
        def report(step, loss, rate):
            if rank == 0:
                print(f"{tag} step {step} loss {loss:.4f} seeds/s {rate:.1f}", flush=True)
        return report

    low, high = book.local_range(rank)
    local_nodes = train_nodes[(train_nodes >= low) & (train_nodes < high)]
    train_epoch(model, optimizer, client, neighbors, labels, local_nodes,
                args.warmup_steps, args.batch_size, gen, reporter("warmup"))
    seeds = node_split(train_nodes, rank, world)
    steps = len(seeds) // args.batch_size
    for epoch in range(args.n_epochs):
        train_epoch(model, optimizer, client, neighbors, labels, seeds,
                    steps, args.batch_size, gen, reporter(f"epoch {epoch}"))
    rpc.shutdown()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
