import torch
import torch.distributed as dist


def validate(model, loader):
    model.eval()
    out = []
    for batch in loader:
        out.append(model(batch))
    return out


def train(model, loader, val):
    dist.init_process_group("nccl")
    for epoch in range(10):
        for b in loader:
            model(b).backward()
        if dist.get_rank() == 0:
            validate(model, val)
        dist.barrier()
