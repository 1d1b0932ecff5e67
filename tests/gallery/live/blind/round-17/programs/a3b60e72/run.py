import argparse
import os

import torch
from torch.distributed import rpc

from server import ParameterServer
from trainer import run_trainer


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--batch-size", type=int, default=128)
    p.add_argument("--views", type=int, default=6)
    p.add_argument("--lr", type=float, default=0.3)
    args = p.parse_args()
    torch.set_num_threads(1)

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    opts = rpc.TensorPipeRpcBackendOptions(num_worker_threads=16)
    name = "ps" if rank == 0 else f"trainer{rank}"
    rpc.init_rpc(name, rank=rank, world_size=world, rpc_backend_options=opts)
    if rank == 0:
        print(f"parameter server up, {world - 1} trainers", flush=True)
    else:
        ps = rpc.remote("ps", GetServer, args=(world - 1, args.lr))
        run_trainer(ps, rank, args)
    rpc.shutdown()


_server = {}


def GetServer(n_trainers, lr):
    return _server.setdefault("ps", ParameterServer(n_trainers, lr))


if __name__ == "__main__":
    main()
