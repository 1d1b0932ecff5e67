import os

import torch.distributed as dist
from torch.utils.cpp_extension import load

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(HERE, ".ext_build", "fused_huber")


def _load():
    os.makedirs(BUILD, exist_ok=True)
    return load(name="fused_huber", sources=[os.path.join(HERE, "csrc", "fused_huber.cpp")],
                build_directory=BUILD, extra_cflags=["-O2"], verbose=False)


def load_ops():
    """Rank 0 compiles, the others pick up the finished library."""
    ops = None
    if dist.get_rank() == 0:
        ops = _load()
    dist.barrier()
    return ops if ops is not None else _load()
