"""The norm is made whole on all ranks; rank 0 only prints it. What is counted is local by nature."""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard


def main(model, batches, optimizer):
    fully_shard(model)
    for batch in batches:
        loss = model(batch).sum()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).full_tensor()
        local = sum(p.to_local().numel() for p in model.parameters())
        if dist.get_rank() == 0:
            print(norm.item(), float(loss.detach().sum()), local, norm > 1)
        optimizer.step()
