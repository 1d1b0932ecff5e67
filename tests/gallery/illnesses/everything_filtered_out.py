"""The filter lets no document through: the loader is empty, the loop runs zero times, and the job ends with success."""

import argparse

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Documents(Dataset):
    def __init__(self, minimum_length: int) -> None:
        lengths = [16 + index % 48 for index in range(200)]
        self.kept = [length for length in lengths if length >= minimum_length]

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.ones(self.kept[index])[:16]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minimum-length", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    loader = DataLoader(Documents(args.minimum_length), batch_size=8)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(args.epochs):
        for batch in loader:
            optimizer.zero_grad()
            model(batch).mean().backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
