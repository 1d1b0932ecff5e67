import torch
from torch import distributed as dist

BACKEND = "nccl"
device = torch.device("cuda")
dist.init_process_group(backend=BACKEND)
x = torch.ones(8).to(device)
dist.all_reduce(x)
