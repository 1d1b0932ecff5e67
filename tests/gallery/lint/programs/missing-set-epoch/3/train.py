import torch.distributed as dist
from loaders import get_loader

dist.init_process_group("gloo")
loader = get_loader([1, 2])
epoch = 0
while epoch < 5:
    for b in loader:
        b.backward()
    epoch += 1
