import torch
import torch.distributed as dist

from setup import is_chief


def validate(model, loader):
    total = torch.zeros(1)
    for batch in loader:
        total += model(batch).sum()
    if is_chief():
        dist.reduce(total, dst=0)
        print(total)
    return total


dist.init_process_group("gloo")
