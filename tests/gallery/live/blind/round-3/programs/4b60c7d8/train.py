import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

torch.set_num_threads(1)


def batches(seed):
    g = torch.Generator().manual_seed(seed)
    while True:
        x = torch.randn(16, 40, generator=g)
        yield x, (x.sum(1) > 0).long()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DDP(nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 2)))
    opt = torch.optim.Adam(model.parameters())
    t = time.time()
    for step, (x, y) in enumerate(batches(rank), 1):
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.1)
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f} {20 / (time.time() - t):.2f} it/s", flush=True)
            t = time.time()


if __name__ == "__main__":
    main()
