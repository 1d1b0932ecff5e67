"""Steps of two seconds that the host spends waiting for the GPU, as long as they are let. The
first argument says what the GPU does meanwhile: `work`, or `wait` for its clock.
"""

import sys

import torch

CYCLES_PER_S = 1_700_000_000


def step_on_gpu(weight, kind):
    if kind == "wait":
        torch.cuda._sleep(2 * CYCLES_PER_S)
    out = weight
    for _ in range(1400 if kind == "work" else 1):
        out = (out @ weight).clamp_(-1, 1)
    return out.float().mean()


def main():
    weight = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    for step in range(1_000_000):
        mean = step_on_gpu(weight, sys.argv[1])
        value = mean.item()
        print(f"step {step} mean {value:.4f}", flush=True)


if __name__ == "__main__":
    main()
