import argparse
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from brain import Brain
from corpus import SpeakerShard, endless


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--nproc", type=int, default=3)
    p.add_argument("--exp_dir", default=os.environ.get("EXP_DIR", "exp"))
    p.add_argument("--epochs", type=int, default=50)
    p.add_argument("--iters_per_epoch", type=int, default=4000)
    p.add_argument("--batch_size", type=int, default=8)
    p.add_argument("--ckpt_interval_minutes", type=float, default=15.0)
    return p.parse_args()


def worker(rank, opts, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=opts.nproc)
    torch.manual_seed(7)
    brain = Brain(opts)
    shards = {}

    def make_batches(epoch):
        if rank not in shards:
            shards[rank] = SpeakerShard(rank)
            print(f"[{rank}] {len(shards[rank])} utterances", flush=True)
        return endless(shards[rank], opts.batch_size, seed=1000 * epoch + rank)

    brain.fit(make_batches)
    dist.destroy_process_group()


def main():
    opts = parse()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(opts, port), nprocs=opts.nproc)


if __name__ == "__main__":
    main()
