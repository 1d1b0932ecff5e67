import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard


def main(model, batches, optimizer):
    dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
    fully_shard(model)
    for batch in batches:
        model(batch).sum().backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if dist.get_rank() == 0:
            print("norm", norm.item())
        optimizer.step()
