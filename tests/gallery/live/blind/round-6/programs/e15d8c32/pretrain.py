import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

from chunks import PrefetchIterator, shard
from lm import HashTokenizer, TinyLM


class Meter:
    def __init__(self, every):
        self.every, self.t, self.vals = every, time.time(), []

    def update(self, step, v):
        self.vals.append(v)
        if step % self.every == 0 and dist.get_rank() == 0:
            now = time.time()
            print(f"step {step} loss {sum(self.vals)/len(self.vals):.3f} {self.every/(now-self.t+1e-9):.1f} it/s", flush=True)
            self.vals, self.t = [], now


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--corpus", required=True)
    ap.add_argument("--steps", type=int, default=1000)
    ap.add_argument("--batch-size", type=int, default=8)
    ap.add_argument("--accum", type=int, default=1)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    data = PrefetchIterator(shard(args.corpus, rank, world), HashTokenizer(), args.batch_size)
    torch.manual_seed(0)
    net = torch.nn.parallel.DistributedDataParallel(TinyLM())
    opt = torch.optim.SGD(net.parameters(), lr=0.3)
    meter = Meter(10)
    for step in range(1, args.steps + 1):
        x = torch.tensor(next(data))
        logits = net(x[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten(), ignore_index=0)
        opt.zero_grad()
        loss.backward()
        opt.step()
        meter.update(step, loss.item())
        time.sleep(0.15)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
