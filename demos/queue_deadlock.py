"""Each rank evaluates in a child process and fetches the predictions over a queue."""

import multiprocessing
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def predict(queue, rows):
    queue.put(bytes(64 * rows))


def evaluate(rows):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=predict, args=(queue, rows))
    child.start()
    child.join()
    return len(queue.get())


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DistributedDataParallel(nn.Linear(64, 8))
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(1, 100_000):
        loss = model(torch.randn(16, 64)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step % 8 == 0:
            evaluate(rows=100_000 if rank == 1 else 10)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
