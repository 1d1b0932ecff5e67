from functools import wraps

import torch.distributed as dist


def rank_zero_only(fn):
    @wraps(fn)
    def wrapped(*args, **kwargs):
        if dist.get_rank() == 0:
            return fn(*args, **kwargs)
        return None

    return wrapped


@rank_zero_only
def write_metrics(metrics, path):
    with open(path, "w") as f:
        f.write(str(metrics))
    dist.barrier()


dist.init_process_group("gloo")
