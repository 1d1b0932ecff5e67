import ctypes
import logging
import os
import signal
import sys

import torch.distributed as dist


def tie_to_parent():
    ctypes.CDLL("libc.so.6").prctl(1, signal.SIGKILL)


def setup():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(stream=sys.stdout, level=logging.INFO,
                        format=f"%(asctime)s [rank{rank}] %(message)s")
    return rank, world, logging.getLogger("forge")
