import argparse
import os
import random

import torch
import torch.distributed as dist
import torch.distributed.rpc as rpc

import learner
import trainer


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--role", choices=["trainer", "learner"], required=True)
    ap.add_argument("--iterations", type=int, default=110)
    ap.add_argument("--dir", default=os.environ.get("WORK", "."))
    args = ap.parse_args()
    torch.set_num_threads(1)
    random.seed(11)
    torch.manual_seed(11)

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", rank=rank, world_size=world)
    learner.setup_group(list(range(1, world)))
    name = "trainer" if rank == 0 else f"learner{rank - 1}"
    port = int(os.environ["MASTER_PORT"]) + 1
    opts = rpc.TensorPipeRpcBackendOptions(num_worker_threads=4, rpc_timeout=7200, init_method=f"tcp://127.0.0.1:{port}")
    rpc.init_rpc(name, rank=rank, world_size=world, rpc_backend_options=opts)
    if args.role == "trainer":
        trainer.train(args, [f"learner{i}" for i in range(world - 1)], list(range(1, world)))
    rpc.shutdown()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
