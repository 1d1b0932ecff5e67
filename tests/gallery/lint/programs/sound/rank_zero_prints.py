from functools import wraps

import torch.distributed as dist


def rank_zero_only(fn):
    @wraps(fn)
    def inner(*a, **k):
        if dist.get_rank() == 0:
            return fn(*a, **k)
        return None

    return inner


@rank_zero_only
def info(text):
    print(text)


dist.init_process_group("gloo")
info("hello")
dist.barrier()
