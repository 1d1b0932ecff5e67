import contextlib

import torch.distributed as dist


def is_distributed():
    return dist.is_available() and dist.is_initialized()


def is_main_process():
    return not is_distributed() or dist.get_rank() == 0


def barrier():
    if is_distributed():
        dist.barrier()


@contextlib.contextmanager
def main_process_phase(name):
    """The other ranks wait until the main process has left the phase."""
    try:
        yield is_main_process()
    finally:
        barrier()
