"""Evaluation inside `if rank == ...`: the evaluating rank waits in all_gather for peers that train on."""

import argparse
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@torch.no_grad()
def evaluate(model: torch.nn.Module, held_out: torch.Tensor) -> torch.Tensor:
    scores = model(held_out).mean(dim=1)
    gathered = [torch.empty_like(scores) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, scores)
    return torch.cat(gathered).mean()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--culprit", type=int, default=1)
    parser.add_argument("--when", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=10_000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    data = TensorDataset(torch.randn(480, 16), torch.randint(0, 2, (480,)))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = DDP(torch.nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    held_out = torch.randn(30, 16)
    step = 0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for inputs, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
            step += 1
            if step % args.when == 0:
                if rank == args.culprit:
                    print("accuracy", float(evaluate(model.module, held_out)), flush=True)
            time.sleep(0.01)


if __name__ == "__main__":
    main()
