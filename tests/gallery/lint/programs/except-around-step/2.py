import torch
import torch.distributed as dist

dist.init_process_group("nccl")


def step(model, x):
    try:
        out = model(x)
        dist.all_reduce(out)
    except RuntimeError as e:
        if "out of memory" in str(e):
            torch.cuda.empty_cache()
            return None
        raise
    return out
