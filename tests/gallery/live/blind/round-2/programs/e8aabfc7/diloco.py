import argparse
import time

import torch
import torch.distributed as dist
from accelerate import Accelerator
from torch import nn

torch.set_num_threads(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--inner-steps", type=int, default=100)
    p.add_argument("--rounds", type=int, default=1000)
    args = p.parse_args()
    acc = Accelerator(cpu=True)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
    inner = torch.optim.AdamW(model.parameters(), lr=1e-3)
    anchor = [q.detach().clone() for q in model.parameters()]
    outer = torch.optim.SGD(anchor, lr=0.7, momentum=0.9, nesterov=True)
    g = torch.Generator().manual_seed(acc.process_index)
    for r in range(args.rounds):
        t0 = time.time()
        for _ in range(args.inner_steps):
            x = torch.randn(16, 32, generator=g)
            loss = (model(x) - x.flip(-1)).pow(2).mean()
            inner.zero_grad()
            loss.backward()
            inner.step()
            time.sleep(0.1 + 0.05 * ((r + acc.process_index) % 2))
        print(f"replica {acc.process_index} round {r} inner loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)
        for a, q in zip(anchor, model.parameters()):
            delta = a - q.detach()
            dist.all_reduce(delta)
            a.grad = delta / acc.num_processes
        outer.step()
        with torch.no_grad():
            for a, q in zip(anchor, model.parameters()):
                q.copy_(a)
        if acc.is_main_process:
            print(f"round {r} outer step done", flush=True)


if __name__ == "__main__":
    main()
