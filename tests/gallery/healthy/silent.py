"""A DDP loop that never prints anything."""

import time

import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Bilinear(6, 6, 3))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(100_000):
        optimizer.zero_grad()
        model(torch.randn(5, 6), torch.randn(5, 6)).sum().backward()
        optimizer.step()
        time.sleep(0.01)


if __name__ == "__main__":
    main()
