import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def save(model: FSDP, path):
    state = model.state_dict()
    if dist.get_rank() == 0:
        torch.save(state, path)


def main(net, lr):
    dist.init_process_group("nccl")
    torch.cuda.set_device(lr)
    model = FSDP(net)
    model.clip_grad_norm_(1.0)
    save(model, "m.pt")
