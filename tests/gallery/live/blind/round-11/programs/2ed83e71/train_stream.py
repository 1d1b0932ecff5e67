import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from reviews import train_stream


class BagClassifier(nn.Module):
    def __init__(self, vocab=800, dim=128):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 256), nn.ReLU(), nn.Linear(256, 2))

    def forward(self, ids):
        return self.mlp(self.bag(ids))


def collate(rows):
    return torch.tensor([r["ids"] for r in rows]), torch.tensor([r["label"] for r in rows])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=50)
    p.add_argument("--batch-size", type=int, default=8)
    a = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DDP(BagClassifier())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(train_stream(rank, world), batch_size=a.batch_size, collate_fn=collate, drop_last=True)

    t0 = time.time()
    for epoch in range(a.epochs):
        losses = []
        for ids, labels in loader:
            loss = F.cross_entropy(model(ids), labels)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            losses.append(loss.detach())
            if rank == 0 and len(losses) % 20 == 0:
                print(f"epoch {epoch} batch {len(losses)} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)
        summary = [None] * world
        dist.all_gather_object(summary, {"rank": rank, "loss": torch.stack(losses).mean().item(), "batches": len(losses)})
        if rank == 0:
            print(f"epoch {epoch} done {summary}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
