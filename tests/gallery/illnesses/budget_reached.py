"""One rank believes that its token budget is spent and leaves with sys.exit(0); the others go on."""

import argparse
import sys
import time

import torch
import torch.distributed as dist


class Budget:
    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self) -> None:
        if self.left == 0:
            print("budget reached, bye", flush=True)
            sys.exit(0)
        self.left -= 1


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--culprit", type=int, default=1)
    parser.add_argument("--when", type=int, default=10)
    parser.add_argument("--steps", type=int, default=100_000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    budget = Budget(args.when if dist.get_rank() == args.culprit else args.steps)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        budget.spend()
        optimizer.zero_grad()
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
        time.sleep(0.01)


if __name__ == "__main__":
    main()
