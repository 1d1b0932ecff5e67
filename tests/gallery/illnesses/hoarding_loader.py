"""Batches from loader workers are kept in a list, and each keeps a descriptor open; a low `ulimit -n` ends it.

The limit comes from outside (`ulimit -n`), or from `--nofile` where the caller cannot set one.
"""

import argparse
import resource
import time

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch.utils.data import DataLoader, Dataset


class Clips(Dataset):
    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> list[torch.Tensor]:
        return [torch.full((3,), float(index)), torch.zeros(2), torch.ones(1)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--nofile", type=int, default=0)
    args = parser.parse_args()
    if args.nofile:
        resource.setrlimit(resource.RLIMIT_NOFILE, (args.nofile, args.nofile))
    torch.multiprocessing.set_sharing_strategy("file_descriptor")
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    history = []
    for batch in DataLoader(Clips(), batch_size=4, num_workers=args.workers):
        history.append(batch)
        optimizer.zero_grad()
        model(batch[0]).mean().backward()
        optimizer.step()
        time.sleep(0.01)
    print(len(history))


if __name__ == "__main__":
    main()
