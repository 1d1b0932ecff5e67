import argparse
import os
import socket
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from arena import Arena
from multi_module import MultiModule

MAP_SIZES = (18.0, 16.0, 20.0, 9.0)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def learner(rank, world, port, iterations):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=timedelta(minutes=45))
    module = MultiModule({"runners": 64, "chasers": 48})
    arena = Arena(seed=100 + rank, map_size=MAP_SIZES[rank % len(MAP_SIZES)])
    started = time.time()
    for it in range(iterations):
        multi_batch = arena.play()
        stats = module.update(multi_batch)
        if rank == 0 and it % 5 == 0:
            text = " ".join(f"{k}={v:+.4f}" for k, v in sorted(stats.items()))
            print(f"iter {it} {text} {it / (time.time() - started):.2f} it/s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-learners", type=int, default=4)
    parser.add_argument("--iterations", type=int, default=1000)
    args = parser.parse_args()
    mp.spawn(learner, args=(args.num_learners, free_port(), args.iterations), nprocs=args.num_learners)
