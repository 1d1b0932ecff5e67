"""A DDP loop over a loader with two workers per rank, without end. Each rank leaves a file
`rank<R>-of-<N>` once it trains.
"""

import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):  # type: ignore[misc] # torch is not followed
    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.002)
        return torch.full((4,), float(index % 7))


def main() -> None:
    dist.init_process_group("gloo")
    loader = DataLoader(Rows(), batch_size=4, num_workers=2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step, batch in enumerate(loader):
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
        if step == 2:
            open(f"rank{dist.get_rank()}-of-{dist.get_world_size()}", "w").close()


if __name__ == "__main__":
    main()
