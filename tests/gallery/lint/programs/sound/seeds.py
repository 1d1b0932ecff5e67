import random

import numpy as np
import torch
import torch.distributed as dist


def seed_all(seed):
    seed = seed + dist.get_rank()
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


dist.init_process_group("gloo")
seed_all(1)
