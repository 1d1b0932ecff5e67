import argparse
import time
import torch
import torch.distributed as dist
from stages import Entry, Middle, Head
from comm import push, pull


def get_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--layers", type=int, default=3)
    ap.add_argument("--width", type=int, default=128)
    ap.add_argument("--chunks", type=int, default=4)
    ap.add_argument("--micro", type=int, default=16)
    ap.add_argument("--aux-from", type=int, default=100, help="step at which the long skip is switched on")
    return ap.parse_args()


class Schedule:
    def __init__(self, args, rank):
        self.a, self.rank = args, rank
        self.shape = (args.micro, args.width)
        mod = [Entry, Middle, Head][rank]
        self.mod = mod(args.width)
        self.opt = torch.optim.SGD(self.mod.parameters(), lr=1e-3)

    def forward_chunk(self, long_skip):
        if self.rank == 0:
            main, skip = self.mod(torch.randn(self.shape))
            todo = [(main, 1)]
            if long_skip:
                # bigger hop first, it has the longer way
                todo.insert(0, (skip, 2))
            push(todo)
            return main.pow(2).mean()
        if self.rank == 1:
            (x,) = pull(self.shape, [0])
            y = self.mod(x)
            push([(y, 2)])
            return y.pow(2).mean()
        got = pull(self.shape, [1, 0] if long_skip else [1])
        return self.mod(*got).pow(2).mean()

    def step(self, n):
        self.opt.zero_grad()
        total = 0.0
        for _ in range(self.a.chunks):
            loss = self.forward_chunk(n >= self.a.aux_from)
            (loss / self.a.chunks).backward()
            total += loss.item()
        self.opt.step()
        return total / self.a.chunks


def main():
    args = get_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    sched = Schedule(args, rank)
    n = 0
    while True:
        loss = sched.step(n)
        if rank == 2 and n % 5 == 0:
            print(f"[head] step {n:5d} loss {loss:.4f}", flush=True)
        n += 1
        time.sleep(0.1)


if __name__ == "__main__":
    main()
