import os
import random
import socket
from datetime import timedelta

import torch.distributed as dist


def get_open_port(lo=20000, hi=40000):
    while True:
        port = random.randint(lo, hi)
        with socket.socket() as s:
            try:
                s.bind(("", port))
                return port
            except OSError:
                continue


def init_distributed():
    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    world = int(os.environ["OMPI_COMM_WORLD_SIZE"])
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", str(get_open_port()))
    print(f"| distributed init (rank {rank}): env://", flush=True)
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=timedelta(minutes=60))
    dist.barrier()
    return rank, world
