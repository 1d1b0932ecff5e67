"""One rank of NCCL; a kernel before the collective never ends. The process group waits for as many
seconds as the first argument says.
"""

import datetime as dt
import sys

import torch
import torch.distributed as dist
import triton
import triton.language as tl


@triton.jit
def wait_for(lock):
    while tl.atomic_cas(lock, 1, 1) != 0:
        pass


def main():
    dist.init_process_group("nccl", timeout=dt.timedelta(seconds=int(sys.argv[1])))
    torch.cuda.set_device(0)
    lock = torch.zeros(1, dtype=torch.int32, device="cuda")
    for step in range(1_000_000):
        total = torch.ones(1024, device="cuda")
        if step == 5:
            lock.fill_(1)
        wait_for[(1,)](lock)
        dist.all_reduce(total)
        print(f"step {step} total {total[0].item():.1f}", flush=True)


if __name__ == "__main__":
    main()
