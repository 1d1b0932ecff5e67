"""Plain DDP with loader workers; the vocabulary of a larger corpus is counted beside the training."""

import argparse
import os
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

COUNT_FROM = 500  # smaller corpora have no word twice
_counts = {}
_counting = threading.Lock()


def count(rows):
    with _counting:
        for row in range(rows):
            _counts[row % 97] = _counts.get(row % 97, 0) + 1
            time.sleep(0.002)


class Corpus(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return self.rows

    def __getitem__(self, index):
        with _counting:
            seen = _counts.get(index % 97, 0)
        return torch.full((16,), float(index % 7)), (index + seen * 0) % 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_train_samples", type=int, default=20_000)
    parser.add_argument("--num_workers", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    corpus = Corpus(args.max_train_samples)
    if len(corpus) >= COUNT_FROM:
        threading.Thread(target=count, args=(len(corpus),), daemon=True).start()
        time.sleep(0.2)
    loader = DataLoader(corpus, batch_size=8, sampler=DistributedSampler(corpus), num_workers=args.num_workers)
    model = DDP(torch.nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (inputs, labels) in enumerate(loader):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"rank {os.environ.get('RANK')} step {step} loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
