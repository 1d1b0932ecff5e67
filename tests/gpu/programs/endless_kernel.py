"""One rank; a kernel of its fifth step never ends. With the argument `clip` the line where it waits
for the GPU is one of torch's own, which shows no sign of that.
"""

import sys

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def decay(buffer, lock, width: tl.constexpr):
    while tl.atomic_cas(lock, 1, 1) != 0:
        pass
    offsets = tl.arange(0, width)
    tl.store(buffer + offsets, tl.load(buffer + offsets) * 0.99)


def main():
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    lock = torch.zeros(1, dtype=torch.int32, device="cuda")
    average = torch.ones(256, device="cuda")
    for step in range(1_000_000):
        loss = model(torch.randn(64, 256, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 4:
            lock.fill_(1)
        decay[(1,)](average, lock, width=256)
        if sys.argv[1:] == ["clip"]:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        print(f"step {step} loss {loss.item():.4f} average {average[0].item():.4f}", flush=True)


if __name__ == "__main__":
    main()
