import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader

from stream import SocialStream
from taggers import Lower, PunctuationParagraphs, Whitespace


class ByteLM(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.e = nn.Embedding(256, d)
        self.c = nn.Conv1d(d, d, 5)
        self.o = nn.Linear(d, 256)

    def forward(self, x):
        h = nn.functional.pad(self.e(x).transpose(1, 2), (4, 0))
        return self.o(torch.relu(self.c(h)).transpose(1, 2))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--shards", default="shards")
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--max-steps", type=int, default=50000)
    p.add_argument("--workers", type=int, default=1)
    a = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    ds = SocialStream(a.shards, rank, world, [PunctuationParagraphs(), Whitespace(), Lower()])
    dl = DataLoader(ds, a.batch_size, num_workers=a.workers, prefetch_factor=2)
    m = nn.parallel.DistributedDataParallel(ByteLM())
    opt = torch.optim.Adam(m.parameters(), 2e-3)
    for step, x in enumerate(dl, 1):
        out = m(x[:, :-1])
        loss = nn.functional.cross_entropy(out.flatten(0, 1), x[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.1)
        if rank == 0 and step % 10 == 0:
            print(f"step={step} loss={loss.item():.3f}", flush=True)
        if step >= a.max_steps:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
