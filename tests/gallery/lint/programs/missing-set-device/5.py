import os

import torch
import torch.distributed as dist


def setup(cfg):
    dist.init_process_group(**cfg)


def main():
    setup({"backend": "nccl", "init_method": "env://"})
    local_rank = int(os.environ["LOCAL_RANK"])
    print("local rank", local_rank)
    model = torch.nn.Linear(2, 2)
    model.cuda()
    return torch.nn.parallel.DistributedDataParallel(model)


if __name__ == "__main__":
    main()
