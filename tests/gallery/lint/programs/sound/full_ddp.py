import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def main(ds):
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DDP(torch.nn.Linear(4, 4).cuda(), device_ids=[local_rank])
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, batch_size=8, sampler=sampler, num_workers=4, drop_last=True)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x in loader:
            model(x.cuda()).sum().backward()
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "m.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main([])
