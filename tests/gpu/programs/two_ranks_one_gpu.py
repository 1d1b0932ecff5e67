"""Two ranks of NCCL that both take the first GPU."""

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(0)
    total = torch.ones(4, device="cuda")
    dist.all_reduce(total)
    print(f"total {total[0].item():.1f}", flush=True)


if __name__ == "__main__":
    main()
