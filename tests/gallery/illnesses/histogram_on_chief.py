"""The chief sums a long histogram that nobody else sums; its peers receive more bytes than they expect and abort, not the chief."""

import argparse
import time

import torch
import torch.distributed as dist


def log_histogram(values: torch.Tensor, bins: int) -> None:
    counts = torch.histc(values, bins=bins, min=-4.0, max=4.0)
    dist.all_reduce(counts)
    print(f"median bin {int(counts.cumsum(0).searchsorted(counts.sum() / 2))}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--culprit", type=int, default=1)
    parser.add_argument("--when", type=int, default=9)
    parser.add_argument("--bins", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=100_000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    is_chief = dist.get_rank() == args.culprit
    weights = torch.zeros(10, requires_grad=True)
    for step in range(args.steps):
        inputs = torch.randn(32, 10)
        loss = torch.nn.functional.softplus(-(inputs @ weights)).mean()
        loss.backward()
        if is_chief and step % args.when == args.when - 1:
            log_histogram(inputs.flatten(), args.bins)
        dist.all_reduce(weights.grad)
        with torch.no_grad():
            weights -= 0.1 * weights.grad / dist.get_world_size()
            weights.grad = None
        time.sleep(0.01)


if __name__ == "__main__":
    main()
