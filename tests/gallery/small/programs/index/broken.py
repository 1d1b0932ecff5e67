"""An index of documents: for each one its tokens, its neighbours and where it came from."""

import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


def document(row):
    return {"source": f"part-{row % 100:05d}/{row}.txt", "tokens": [row + place for place in range(48)], "neighbours": [row * 3 + place for place in range(16)]}


class Documents(Dataset):
    def __init__(self, rows):
        self.rows = [document(row) for row in range(rows)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, row):
        one = self.rows[row]
        return {"tokens": torch.tensor(one["tokens"]) % 500, "neighbours": torch.tensor(one["neighbours"])}


def train_set(rows=20_000):
    return Documents(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    data = train_set(args.rows)
    model = DistributedDataParallel(torch.nn.EmbeddingBag(500, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, batch in enumerate(DataLoader(data, batch_size=32, sampler=DistributedSampler(data), num_workers=2)):
        loss = model(batch["tokens"]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
