import functools

import torch
import torch.distributed as dist


@functools.lru_cache
def stats_group():
    """Separate group for the small reductions of losses and meters."""
    return dist.new_group(backend="gloo")


def reduce_mean(value):
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return value
    value = value.clone()
    dist.all_reduce(value, group=stats_group())
    return value / dist.get_world_size()


def is_main():
    return not dist.is_initialized() or dist.get_rank() == 0
