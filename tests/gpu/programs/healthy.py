"""One rank of NCCL that trains, evaluates and saves, as long as it is let."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def evaluate(model):
    with torch.no_grad():
        total = torch.zeros(1, device="cuda")
        for _ in range(20):
            total += model(torch.randn(512, 2048, device="cuda")).square().mean()
    dist.all_reduce(total)
    return total.item() / 20


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(2048, 4096), nn.ReLU(), nn.Linear(4096, 1)).cuda()
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        for step in range(1_000_000):
            loss = model(torch.randn(512, 2048, device="cuda")).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            if step % 500 == 499:
                print(f"step {step} evaluated {evaluate(model):.4f}", flush=True)
                torch.save(model.state_dict(), os.path.join(folder, "last.pt"))


if __name__ == "__main__":
    main()
