import os

import torch
import torch.distributed as dist


def save(out, step, model, opt):
    os.makedirs(out, exist_ok=True)
    rank = dist.get_rank()
    torch.save({"opt": opt.state_dict(), "step": step}, os.path.join(out, f"opt_{rank}.pt"))
    if rank == 0:
        torch.save(model.state_dict(), os.path.join(out, f"checkpoint_{step:08d}.pt"))
    dist.barrier()
