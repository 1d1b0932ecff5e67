import argparse
import logging
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

import pipes_data as data

log = logging.getLogger("ranker")


class Ranker(nn.Module):
    def __init__(self, users=5000, items=2000, dim=64):
        super().__init__()
        self.u, self.i = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(dim, 4, 256, batch_first=True, dropout=0.0), 2)
        self.out = nn.Sequential(nn.Linear(2 * dim, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, user, items):
        h = self.enc(self.i(items)).mean(1)
        return self.out(torch.cat([self.u(user), h], -1)).squeeze(-1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--epochs", type=int, default=400)
    p.add_argument("--batch-size", type=int, default=16)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s rank{rank} %(message)s")
    torch.manual_seed(0)

    model = DDP(Ranker())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    loader = DataLoader(data.build(args.data, rank, world), batch_size=args.batch_size, collate_fn=data.collate)

    step = 0
    for epoch in range(args.epochs):
        running = 0.0
        for n, (user, items, label) in enumerate(loader, 1):
            loss = loss_fn(model(user, items), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item()
            step += 1
            if step % 25 == 0:
                log.info("epoch %d step %d loss %.4f", epoch, step, running / n)
        log.info("epoch %d finished after %d batches, mean loss %.4f", epoch, n, running / n)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
