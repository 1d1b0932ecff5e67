"""Parameter averaging; the rank that checkpoints enters a barrier while the others are already in the next all_reduce."""

import argparse
import io
import time

import torch
import torch.distributed as dist


def save_checkpoint(model: torch.nn.Module) -> int:
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    dist.barrier()
    return buffer.tell()


def average_parameters(model: torch.nn.Module) -> None:
    flat = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
    dist.all_reduce(flat, op=dist.ReduceOp.SUM)
    torch.nn.utils.vector_to_parameters(flat / dist.get_world_size(), model.parameters())


def run(saver: int, save_at: int, steps: int) -> None:
    torch.manual_seed(dist.get_rank())
    model = torch.nn.Sequential(torch.nn.Conv1d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 14, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(steps):
        signal = torch.randn(8, 3, 16)
        loss = torch.nn.functional.cross_entropy(model(signal), torch.randint(0, 4, (8,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % save_at == save_at - 1 and dist.get_rank() == saver:
            save_checkpoint(model)
        else:
            average_parameters(model)
        time.sleep(0.01)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--culprit", type=int, default=1)
    parser.add_argument("--when", type=int, default=10)
    parser.add_argument("--steps", type=int, default=100_000)
    arguments = parser.parse_args()
    dist.init_process_group("gloo")
    run(arguments.culprit, arguments.when, arguments.steps)
