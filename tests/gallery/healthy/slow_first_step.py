"""The first step takes seconds, as when kernels are compiled; all ranks take part, and afterwards steps are quick."""

import argparse
import time

import torch
import torch.distributed as dist


def compile_kernels(seconds: float) -> None:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        torch.linalg.matrix_exp(torch.randn(24, 24))
        time.sleep(0.02)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--first-s", type=float, default=8.0)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(10, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100_000):
        optimizer.zero_grad()
        loss = model(torch.randn(6, 10)).pow(2).mean()
        if step == 0:
            compile_kernels(args.first_s)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        time.sleep(0.01)


if __name__ == "__main__":
    main()
