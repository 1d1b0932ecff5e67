from contextlib import contextmanager
from datetime import timedelta

import torch.distributed as dist


@contextmanager
def extended_timeout(ranks, hours=3):
    group = dist.new_group(ranks, backend="gloo", timeout=timedelta(hours=hours))
    try:
        yield group
    finally:
        dist.barrier(group=group)
        dist.destroy_process_group(group)
