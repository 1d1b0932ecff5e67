"""Train on texts of which near doubles are left out."""

import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def texts(rows):
    return [f"row {row} the quick brown fox no {row % 97} jumps over {row * 31 % 1009} lazy dogs in a field of clover" for row in range(rows)]


def without_doubles(lines):
    """Leave out every line with the same words as an earlier one."""
    return list(dict.fromkeys(frozenset(line.split()) for line in lines))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    kept = without_doubles(texts(args.rows))
    data = TensorDataset(torch.tensor([[len(words), sum(map(len, words))] for words in kept], dtype=torch.float32))
    model = DistributedDataParallel(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    batches = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    for step, (batch,) in enumerate(batches):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
