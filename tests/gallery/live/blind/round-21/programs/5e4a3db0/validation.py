import time

import torch
import torch.distributed as dist


@torch.no_grad()
def validate(model, batches, gen):
    model.eval()
    total = torch.zeros(2)
    for _ in range(batches):
        x = torch.randn(4, 16, 24, generator=gen)
        time.sleep(0.25)
        total[0] += (model(x).argmax(-1) == 0).float().sum()
        total[1] += len(x)
    dist.all_reduce(total)
    model.train()
    return (total[0] / total[1]).item()
