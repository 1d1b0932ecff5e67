import contextlib
import ctypes
import signal

import torch.distributed as dist


def tie_to_parent():
    ctypes.CDLL("libc.so.6").prctl(1, signal.SIGKILL)


def setup():
    dist.init_process_group("gloo")
    return dist.get_rank()


@contextlib.contextmanager
def main_process_first():
    if dist.get_rank() != 0:
        dist.barrier()
    yield
    if dist.get_rank() == 0:
        dist.barrier()
