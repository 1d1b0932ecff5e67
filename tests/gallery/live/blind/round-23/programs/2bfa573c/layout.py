import functools

import torch
import torch.distributed as dist


class PositionPlanner:
    """Where each rank's tokens start in the global sequence, for rotary offsets."""

    def __init__(self, group, bucket=16):
        self.group = group
        self.bucket = bucket
        self.rank = dist.get_rank(group)
        self.world = dist.get_world_size(group)

    def padded(self, length):
        return -(-length // self.bucket) * self.bucket

    @functools.lru_cache(maxsize=64)
    def offsets(self, padded_len):
        mine = torch.tensor([padded_len])
        everyone = [torch.zeros_like(mine) for _ in range(self.world)]
        dist.all_gather(everyone, mine, group=self.group)
        lengths = torch.cat(everyone)
        return int(lengths.cumsum(0)[self.rank] - padded_len)
