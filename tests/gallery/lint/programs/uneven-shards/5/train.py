import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from split import own_part


def main(model, ds):
    dist.init_process_group("gloo")
    model = DDP(model)
    for x in own_part(ds):
        model(x).backward()


main(None, [])
