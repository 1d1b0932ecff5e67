"""Every 60 steps rank 0 evaluates alone for a few seconds while the others wait at the next all_reduce. That is slow, not ill."""

import argparse
import time

import torch
import torch.distributed as dist


@torch.no_grad()
def evaluate(model: torch.nn.Module, seconds: float) -> float:
    ends = time.monotonic() + seconds
    total = 0.0
    while time.monotonic() < ends:
        total += model(torch.randn(64, 12)).mean().item()
        time.sleep(0.01)
    return total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--evaluate-s", type=float, default=3.0)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(12, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(100_000):
        optimizer.zero_grad()
        model(torch.randn(4, 12)).sum().backward()
        optimizer.step()
        if step % 60 == 30 and dist.get_rank() == 0:
            print(f"step {step} score {evaluate(model.module, args.evaluate_s):.3f}", flush=True)
        time.sleep(0.01)


if __name__ == "__main__":
    main()
