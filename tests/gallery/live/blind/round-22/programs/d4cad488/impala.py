import os
import socket

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp

from actor import Actor
from learner import Learner

WORLD = 3


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(rank, port):
    torch.set_num_threads(1)
    torch.manual_seed(11)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    opts = rpc.TensorPipeRpcBackendOptions(num_worker_threads=8, rpc_timeout=3600)
    if rank == 0:
        learner = Learner([f"actor{r}" for r in range(1, WORLD)])
        rpc.init_rpc("learner", rank=0, world_size=WORLD, rpc_backend_options=opts)
        learner.run(rounds=5000)
    else:
        Actor(rank)
        rpc.init_rpc(f"actor{rank}", rank=rank, world_size=WORLD, rpc_backend_options=opts)
    rpc.shutdown(timeout=7200)


if __name__ == "__main__":
    mp.spawn(run, args=(free_port(),), nprocs=WORLD, join=True)
