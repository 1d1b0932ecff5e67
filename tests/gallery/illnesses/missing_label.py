"""A sample of one rank has no label: KeyError there, while the others stand in the gradient all_reduce."""

import argparse
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self, rank: int, bad_rank: int, bad_index: int) -> None:
        self.rows = [{"text": torch.randn(10), "label": torch.tensor(float(i % 2))} for i in range(4000)]
        if rank == bad_rank:
            del self.rows[bad_index]["label"]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return self.rows[index]


def collate(rows: list[dict[str, torch.Tensor]]) -> tuple[torch.Tensor, torch.Tensor]:
    labels = torch.stack([row["label"] for row in rows])
    return torch.stack([row["text"] for row in rows]), labels


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--culprit", type=int, default=1)
    parser.add_argument("--when", type=int, default=14)
    parser.add_argument("--slow", type=float, default=1.0, help="seconds that the bad rank reads before it fails")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    loader = DataLoader(Samples(rank, args.culprit, args.when * 4 + 1), batch_size=4, collate_fn=collate)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(10, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    iterator = iter(loader)
    for step in range(len(loader)):
        if rank == args.culprit and step == args.when:
            time.sleep(args.slow)
        inputs, labels = next(iterator)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(inputs).squeeze(1), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.01)


if __name__ == "__main__":
    main()
