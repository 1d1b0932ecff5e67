import os

import torch.distributed as dist
from torch.utils.cpp_extension import load

_HERE = os.path.dirname(os.path.abspath(__file__))
_ext = None


def get_ext():
    """Built by the first rank, then loaded by the others."""
    global _ext
    if _ext is None:
        if dist.get_rank() != 0:
            dist.barrier()
        _ext = load(name="rotary_ops", sources=[os.path.join(_HERE, "csrc", "rotary.cpp")],
                    extra_cflags=["-O2"], verbose=dist.get_rank() == 0)
        if dist.get_rank() == 0:
            dist.barrier()
    return _ext


def rotary(x, cos, sin):
    return get_ext().rotate_half(x, cos, sin)
