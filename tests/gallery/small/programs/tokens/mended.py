"""Tokenise in a process of its own, so that the training process stays small."""

import argparse
import multiprocessing

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def tokenise(rows, done):
    done.put([[row % 97, row % 31, row % 7] for row in range(rows)])


def tokens(rows):
    done = multiprocessing.Queue()
    child = multiprocessing.Process(target=tokenise, args=(rows, done))
    child.start()
    found = done.get()
    child.join()
    return torch.tensor(found, dtype=torch.float32)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    data = TensorDataset(tokens(args.rows))
    model = DistributedDataParallel(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
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
