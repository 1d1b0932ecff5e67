"""A kernel of its own writes far behind its buffer."""

import torch
import triton
import triton.language as tl


@triton.jit
def scatter(buffer, stride, width: tl.constexpr):
    offsets = tl.arange(0, width).to(tl.int64) * stride
    tl.store(buffer + offsets, 1.0)


def main():
    buffer = torch.zeros(1024, device="cuda")
    for step in range(10):
        scatter[(1,)](buffer, 1 if step < 3 else 2**36, width=1024)
        print(f"step {step} sum {buffer.sum().item():.1f}", flush=True)


if __name__ == "__main__":
    main()
