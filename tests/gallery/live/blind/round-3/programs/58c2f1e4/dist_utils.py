import os

import torch
import torch.distributed as dist


def setup():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


def wait_for_everyone():
    if dist.is_initialized():
        dist.barrier()


def is_main_process():
    return int(os.environ.get("RANK", "0")) == 0
