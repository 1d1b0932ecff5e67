import argparse
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from engine import PipeEngine
from latents import LatentStream


def worker(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(args.stages))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=args.stages)
    torch.manual_seed(rank)
    engine = PipeEngine(args)
    # both ends draw from the same seed, so the last stage has the targets at hand
    train = LatentStream(args.micro_size, args.frames, args.latent, seed=77)
    # the held-out clips live with the first stage only
    held_out = LatentStream(args.micro_size, args.frames, args.latent, seed=78) if engine.first else None
    t0 = time.time()
    for step in range(1, args.steps + 1):
        loss = engine.train_batch(train)
        if engine.last and step % 10 == 0:
            print(f"step {step} loss {loss:.4f} ({(time.time() - t0) / 10:.3f} s/step)", flush=True)
            t0 = time.time()
        if step % args.eval_every == 0:
            val = engine.eval_batch(held_out)
            if engine.last:
                print(f"step {step} validation loss {val:.4f}", flush=True)
    dist.destroy_process_group()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--stages", type=int, default=3)
    p.add_argument("--micro-batches", type=int, default=4)
    p.add_argument("--micro-size", type=int, default=2)
    p.add_argument("--frames", type=int, default=32)
    p.add_argument("--latent", type=int, default=16)
    p.add_argument("--dim", type=int, default=96)
    p.add_argument("--depth", type=int, default=2)
    p.add_argument("--steps", type=int, default=100000)
    p.add_argument("--eval-every", type=int, default=40)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(args, port), nprocs=args.stages)


if __name__ == "__main__":
    main()
