import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def main(build):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % 8)
    model = FSDP(build())
    if dist.get_rank() == 0:
        state = model.state_dict()
        torch.save(state, "model.pt")
