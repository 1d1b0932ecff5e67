import contextlib
import fcntl
import os

import torch.distributed as dist


@contextlib.contextmanager
def exclusive(path):
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


@contextlib.contextmanager
def scratch_group():
    """A group for one evaluation, so that its traffic stays apart from training."""
    group = dist.new_group(backend="gloo")
    try:
        yield group
    finally:
        dist.barrier(group=group)
        dist.destroy_process_group(group)


def newest(directory):
    steps = sorted(int(n.split("_")[1].split(".")[0]) for n in os.listdir(directory) if n.startswith("model_"))
    return steps[-1] if steps else None


def agreed_step(directory, rank):
    """Everybody resumes from what rank 0 sees."""
    box = [newest(directory) if rank == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]
