import torch
from torch.distributed import get_rank
from torch.distributed.fsdp import fully_shard


def step(model, optimizer, loss):
    loss.backward()
    if get_rank() == 0:
        total = torch.nn.utils.get_total_norm(model.parameters())
        print(total)
    optimizer.step()


def main(model, optimizer, batches):
    fully_shard(model)
    for batch in batches:
        step(model, optimizer, model(batch).mean())
