import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from graph import CSRGraph
from loader import NeighborLoader, PrefetchLoader


class SAGE(nn.Module):
    def __init__(self, dim, hidden, classes):
        super().__init__()
        self.s1, self.n1 = nn.Linear(dim, hidden), nn.Linear(dim, hidden)
        self.s2, self.n2 = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, classes)

    def forward(self, x0, x1, x2):
        h0 = F.relu(self.s1(x0) + self.n1(x1.mean(1)))
        h1 = F.relu(self.s1(x1) + self.n1(x2))
        return self.out(F.relu(self.s2(h0) + self.n2(h1.mean(1))))


@torch.no_grad()
def evaluate(model, graph, args):
    model.eval()
    hits = total = 0
    for seeds, x0, x1, x2, y in PrefetchLoader(graph, graph.val_idx, args.batch_size, args.fanouts):
        hits += (model(x0, x1, x2).argmax(-1) == y).sum().item()
        total += len(y)
    model.train()
    return hits / total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--nodes", type=int, default=24000)
    p.add_argument("--batch-size", type=int, default=512)
    p.add_argument("--fanouts", type=int, nargs=2, default=[10, 5])
    p.add_argument("--epochs", type=int, default=400)
    p.add_argument("--eval-every", type=int, default=5)
    args = p.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    graph = CSRGraph(args.nodes, 12, 64, 16)
    idx = graph.train_idx.chunk(world)[rank]
    torch.manual_seed(rank)
    train_loader = NeighborLoader(graph, idx, args.batch_size, args.fanouts)
    model = DDP(SAGE(64, 128, 16))
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)

    for epoch in range(1, args.epochs + 1):
        t0, tot = time.time(), 0.0
        for i, b in enumerate(train_loader):
            loss = F.cross_entropy(model(b.x0, b.x1, b.x2), b.y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item()
            if rank == 0 and i % 10 == 0:
                print(f"Epoch {epoch:03d} | Iter {i:03d}/{len(train_loader)} | Loss {loss.item():.4f}", flush=True)
        if rank == 0:
            print(f"Epoch {epoch:03d} | Loss {tot / len(train_loader):.4f} | Time {time.time() - t0:.1f}s", flush=True)
        if epoch % args.eval_every == 0:
            if rank == 0:
                acc = evaluate(model.module, graph, args)
                print(f"Epoch {epoch:03d} | Val acc {acc:.4f}", flush=True)
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
