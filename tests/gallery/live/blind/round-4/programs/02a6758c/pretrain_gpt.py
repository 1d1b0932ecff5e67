import argparse
import os

import torch
import torch.distributed as dist

from gpt import GPT
from grads import allreduce_grads
from replay import SampleCache


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--micro-batch", type=int, default=4)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = GPT()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    cache = SampleCache(rank)
    print(f"worker {rank} pid {os.getpid()} up")
    for it in range(1000000):
        x = cache.next(args.micro_batch)
        loss = model(x[:, :-1], x[:, 1:])
        opt.zero_grad()
        loss.backward()
        allreduce_grads(model)
        opt.step()
        if it % 10 == 0:
            print(f"iteration {it:8d} | lm loss {loss.item():.4E} | cached {cache.mb():.0f} MB")


if __name__ == "__main__":
    main()
