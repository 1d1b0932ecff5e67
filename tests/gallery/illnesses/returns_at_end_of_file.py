"""main() returns on one rank because its reader came to the end of its file; the others still reduce their gradients."""

import argparse
import time
from collections.abc import Iterator

import torch
import torch.distributed as dist


def lines_of(rank: int, short_rank: int, short: int, full: int) -> Iterator[torch.Tensor]:
    for index in range(short if rank == short_rank else full):
        yield torch.full((6,), float(index % 7))


def reduce_gradients(model: torch.nn.Module) -> None:
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--culprit", type=int, default=1)
    parser.add_argument("--when", type=int, default=12)
    parser.add_argument("--steps", type=int, default=100_000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.Linear(6, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    source = lines_of(rank, args.culprit, args.when, args.steps)
    while True:
        row = next(source, None)
        if row is None:
            print(f"rank {rank}: end of file", flush=True)
            dist.destroy_process_group()
            return 0
        optimizer.zero_grad()
        model(row).sum().backward()
        reduce_gradients(model)
        optimizer.step()
        time.sleep(0.01)


if __name__ == "__main__":
    raise SystemExit(main())
