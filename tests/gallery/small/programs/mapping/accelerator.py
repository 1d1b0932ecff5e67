"""A stand-in at the boundary of torch: behaves as torch.cuda does on a machine with a GPU, as far as a fork can see it.

A process that has used CUDA counts as initialised; in a child that it forks, torch's own check refuses to start CUDA again.
"""

import os

import torch


def use():
    """As the first `.to('cuda')` does."""
    used_by = os.getpid()
    torch.cuda._initialized = True
    torch.cuda._is_in_bad_fork = lambda: os.getpid() != used_by
    torch._C._cuda_getDevice = lambda: 0
