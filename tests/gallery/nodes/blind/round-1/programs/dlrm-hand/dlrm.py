import time

import torch
import torch.distributed as dist
from torch import nn


class DLRM(nn.Module):
    def __init__(self, tables=4, rows=1000, width=16):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width) for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, width), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(width * (tables + 1), 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, dense, sparse):
        parts = [self.bottom(dense)] + [table(ids) for table, ids in zip(self.tables, sparse)]
        return self.top(torch.cat(parts, 1))


def average_gradients(model, world):
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(flat)
    flat /= world
    at = 0
    for p in model.parameters():
        p.grad.copy_(flat[at : at + p.numel()].view_as(p))
        at += p.numel()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DLRM()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    torch.manual_seed(rank)
    last = time.time()
    for step in range(1_000_000):
        dense, sparse = torch.randn(64, 13), [torch.randint(1000, (64, 3)) for _ in range(4)]
        loss = nn.functional.binary_cross_entropy_with_logits(model(dense, sparse), torch.randint(2, (64, 1)).float())
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model, world)
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(f"it {step} loss {loss.item():.4f} {(time.time() - last) / 10 * 1e3:.0f} ms/it", flush=True)
            last = time.time()


if __name__ == "__main__":
    main()
