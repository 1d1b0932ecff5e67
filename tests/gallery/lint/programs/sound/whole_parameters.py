"""Parameters that nothing shards are whole on each rank."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(net):
    dist.init_process_group("gloo")
    model = DDP(net)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if dist.get_rank() == 0 and norm > 10:
        print(norm.item(), {name: float(p.norm()) for name, p in model.named_parameters()})
