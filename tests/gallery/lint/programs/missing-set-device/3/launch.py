import datetime

import torch.distributed as dist


def start():
    dist.init_process_group("nccl", timeout=datetime.timedelta(minutes=10))
