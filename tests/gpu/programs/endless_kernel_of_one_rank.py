"""Ranks that share one GPU and meet by gloo; a kernel of rank 1 never ends."""

import torch
import torch.distributed as dist
import triton
import triton.language as tl
from torch import nn
from torch.nn.parallel import DistributedDataParallel


@triton.jit
def decay(buffer, lock, width: tl.constexpr):
    while tl.atomic_cas(lock, 1, 1) != 0:
        pass
    offsets = tl.arange(0, width)
    tl.store(buffer + offsets, tl.load(buffer + offsets) * 0.99)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DistributedDataParallel(nn.Linear(256, 1).cuda(), device_ids=[0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    lock = torch.zeros(1, dtype=torch.int32, device="cuda")
    average = torch.ones(256, device="cuda")
    for step in range(1_000_000):
        loss = model(torch.randn(64, 256, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 4 and rank == 1:
            lock.fill_(1)
        decay[(1,)](average, lock, width=256)
        if rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
