import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn

from .loader import AudioShard
from .manifest import ensure_manifest, load


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(24, 48)
        self.rnn = nn.GRU(48, 48, batch_first=True)
        self.out = nn.Linear(48, 30)

    def forward(self, x):
        return self.out(self.rnn(self.inp(x).relu())[0])


def average_gradients(model, world):
    flat = torch.cat([p.grad.view(-1) for p in model.parameters()])
    dist.all_reduce(flat)
    flat /= world
    off = 0
    for p in model.parameters():
        n = p.grad.numel()
        p.grad.copy_(flat[off:off + n].view_as(p.grad))
        off += n


def end_of_epoch(total, count):
    dist.barrier()
    t = torch.tensor([total, float(count)])
    dist.all_reduce(t)
    return (t[0] / t[1]).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--manifest", required=True)
    p.add_argument("--epochs", type=int, default=40)
    p.add_argument("--batch", type=int, default=8)
    a = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        ensure_manifest(a.manifest)
    dist.barrier()
    shard = AudioShard(load(a.manifest), rank, world)
    torch.manual_seed(0)
    model = Encoder()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(a.epochs):
        total = count = 0
        for x, y in shard.batches(a.batch, epoch):
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
            opt.zero_grad()
            loss.backward()
            average_gradients(model, world)
            opt.step()
            total += loss.item()
            count += 1
            if count % 10 == 0:
                print(f"epoch {epoch} batch {count} loss {loss.item():.3f}", flush=True)
            time.sleep(0.25)
        mean = end_of_epoch(total, count)
        if rank == 0:
            print(f"epoch {epoch} done, mean loss {mean:.4f}", flush=True)


if __name__ == "__main__":
    main()
