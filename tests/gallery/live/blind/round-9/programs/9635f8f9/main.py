import argparse
import os
import socket

import torch
import torch.multiprocessing as mp
from torch.distributed import rpc

from server import ParameterServer
from trainer import run_trainer


def run(rank, world, args):
    torch.set_num_threads(1)
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(args.port)
    options = rpc.TensorPipeRpcBackendOptions(
        num_worker_threads=args.server_threads if rank == 0 else 2,
        rpc_timeout=7200,
        _transports=["uv"],
    )
    if rank == 0:
        rpc.init_rpc("ps", rank=rank, world_size=world, rpc_backend_options=options)
        server = rpc.RRef(ParameterServer(args.trainers))
        futures = [
            rpc.rpc_async(f"trainer{i}", run_trainer, args=(server, i, args), timeout=0)
            for i in range(1, world)
        ]
        print(f"[ps] serving {args.trainers} trainers", flush=True)
        torch.futures.wait_all(futures)
    else:
        rpc.init_rpc(f"trainer{rank}", rank=rank, world_size=world, rpc_backend_options=options)
    rpc.shutdown(timeout=0)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--trainers", type=int, default=2)
    p.add_argument("--server-threads", type=int, default=16)
    p.add_argument("--steps", type=int, default=20000)
    p.add_argument("--batch-size", type=int, default=256)
    p.add_argument("--eval-every", type=int, default=40)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        args.port = s.getsockname()[1]
    mp.spawn(run, args=(args.trainers + 1, args), nprocs=args.trainers + 1)


if __name__ == "__main__":
    main()
