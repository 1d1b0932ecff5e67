"""Whiten the features of all rows in a few processes, after a look at their spectrum in this one."""

import argparse
import multiprocessing

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

WIDE = 64


def part(first, last):
    return (torch.arange(first * WIDE, last * WIDE).reshape(-1, WIDE) % 101).float()


def whitened(ends):
    rows = part(*ends)
    return ((rows - rows.mean(0)) / (rows.std(0) + 1)).tanh()


def features(rows, processes=2):
    print(f"largest direction {torch.linalg.matrix_norm(part(0, rows), 2).item():.1f}, mean {part(0, rows).tanh().mean().item():.3f}", flush=True)
    half = (rows + 1) // 2
    with multiprocessing.Pool(processes) as pool:
        return torch.cat(pool.map(whitened, [(0, half), (half, rows)]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000)
    args = parser.parse_args()
    torch.set_num_threads(2)
    dist.init_process_group("gloo")
    data = TensorDataset(features(args.rows))
    model = DistributedDataParallel(torch.nn.Linear(WIDE, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step, (batch,) in enumerate(DataLoader(data, batch_size=16, sampler=DistributedSampler(data))):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
