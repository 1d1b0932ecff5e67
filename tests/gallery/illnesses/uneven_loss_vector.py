"""Per-sample losses are summed over ranks; one rank has a batch of another size, so its vector has another shape."""

import argparse
import time

import torch
import torch.distributed as dist


def batches(rank: int, odd_rank: int, odd_at: int, odd_size: int, total: int):
    for index in range(total):
        size = odd_size if rank == odd_rank and index == odd_at else 16
        yield torch.randn(size, 12), torch.randn(size)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--culprit", type=int, default=1)
    parser.add_argument("--when", type=int, default=10)
    parser.add_argument("--size", type=int, default=9, help="the odd batch; the others have 16 samples")
    parser.add_argument("--steps", type=int, default=100_000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.Linear(12, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, targets in batches(rank, args.culprit, args.when, args.size, args.steps):
        losses = (model(inputs).squeeze(1) - targets) ** 2
        shared = losses.detach().clone()
        dist.all_reduce(shared)
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        time.sleep(0.01)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
