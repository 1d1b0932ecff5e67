import os

import torch

CORES = os.cpu_count() or 1


def threads():
    torch.set_num_threads(CORES)
