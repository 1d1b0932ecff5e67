import os

import torch
import torch.distributed as dist


def save(model, opt, step, folder="ckpt"):
    os.makedirs(folder, exist_ok=True)
    rank = dist.get_rank()
    torch.save({"opt": opt.state_dict(), "step": step}, f"{folder}/optim_{step:08d}_{rank}.pt")
    dist.barrier()
    if rank == 0:
        torch.save(model.state_dict(), f"{folder}/checkpoint_{step:08d}.pt")
        print(f"saved {folder}/checkpoint_{step:08d}.pt", flush=True)
