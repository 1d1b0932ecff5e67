import os
import socket
from datetime import timedelta

import torch.distributed as dist

DEFAULT_PORT = 29500


def _find_free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def _is_free_port(port):
    hosts = ["localhost", os.environ.get("JOB_HEAD_ADDR", "127.0.0.1")]
    for host in hosts:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
            if s.connect_ex((host, port)) == 0:
                return False
    return True


def init_dist(backend="gloo", port=None):
    proc_id = int(os.environ["JOB_PROCID"])
    ntasks = int(os.environ["JOB_NTASKS"])
    if port is not None:
        os.environ["MASTER_PORT"] = str(port)
    elif "MASTER_PORT" not in os.environ:
        if _is_free_port(DEFAULT_PORT):
            os.environ["MASTER_PORT"] = str(DEFAULT_PORT)
        else:
            os.environ["MASTER_PORT"] = str(_find_free_port())
    os.environ.setdefault("MASTER_ADDR", os.environ["JOB_HEAD_ADDR"])
    os.environ["WORLD_SIZE"] = str(ntasks)
    os.environ["LOCAL_RANK"] = os.environ["JOB_LOCALID"]
    os.environ["RANK"] = str(proc_id)
    dist.init_process_group(backend=backend, timeout=timedelta(hours=1))


def get_dist_info():
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1
