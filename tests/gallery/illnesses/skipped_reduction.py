"""Federated-style rounds; one rank has 'nothing new' in a round and skips the all_reduce that the others enter.

Its next collective is then paired with the others' previous one, and the last round never comes together.
"""

import argparse
import time

import torch
import torch.distributed as dist


def local_update(model: torch.nn.Linear, optimizer: torch.optim.Optimizer) -> float:
    inputs = torch.randn(20, model.in_features)
    targets = inputs @ torch.ones(model.in_features, model.out_features)
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def synchronise(model: torch.nn.Linear, round_index: int, lazy_rank: int, lazy_round: int) -> None:
    rank = dist.get_rank()
    if rank == lazy_rank and round_index == lazy_round:
        return
    for parameter in model.parameters():
        dist.all_reduce(parameter.data)
        parameter.data.div_(dist.get_world_size())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--culprit", type=int, default=1)
    parser.add_argument("--when", type=int, default=6)
    parser.add_argument("--steps", type=int, default=40)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    model = torch.nn.Linear(10, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for round_index in range(args.steps):
        loss = local_update(model, optimizer)
        synchronise(model, round_index, args.culprit, args.when)
        if dist.get_rank() == 0:
            print(f"round {round_index}: loss {loss:.3f}", flush=True)
        time.sleep(0.02)
    final = torch.zeros(1)
    dist.all_reduce(final)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
