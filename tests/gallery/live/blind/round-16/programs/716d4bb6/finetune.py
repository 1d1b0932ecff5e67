import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import tracker


class Classifier(nn.Module):
    def __init__(self, vocab=4000, dim=128, classes=20):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.body = nn.Sequential(
            nn.Linear(dim, 512), nn.GELU(), nn.LayerNorm(512),
            nn.Linear(512, 512), nn.GELU(), nn.LayerNorm(512),
        )
        self.head = nn.Linear(512, classes)

    def forward(self, ids):
        return self.head(self.body(self.emb(ids).mean(1)))


def make_data(n=12000, length=24, vocab=4000, classes=20):
    gen = torch.Generator().manual_seed(0)
    ids = torch.randint(vocab, (n, length), generator=gen)
    return TensorDataset(ids, ids[:, 0] % classes)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tracker", default="none")
    p.add_argument("--watch", default="gradients")
    p.add_argument("--epochs", type=int, default=1000)
    args = p.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = Classifier()
    run = tracker.init(args.tracker, "intent-ft", rank)
    run.watch(model, log=args.watch)
    model = DDP(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    data = make_data()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=32, sampler=sampler, drop_last=True)

    step, t0 = 0, time.time()
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for ids, labels in loader:
            loss = F.cross_entropy(model(ids), labels)
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            run.log({"train/loss": loss.item(), "epoch": epoch}, step)
            if rank == 0 and step % 20 == 0:
                rate = step / (time.time() - t0)
                print(f"epoch {epoch} step {step} loss {loss.item():.4f} {rate:.2f} it/s", flush=True)
    run.finish()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
