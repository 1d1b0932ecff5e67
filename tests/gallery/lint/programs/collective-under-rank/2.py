import os
from torch import distributed as td

RANK = int(os.environ.get("RANK", 0))
is_main = RANK == 0


def save(model, path):
    import torch

    if is_main:
        torch.save(model.state_dict(), path)
        td.barrier()


td.init_process_group(backend="nccl")
