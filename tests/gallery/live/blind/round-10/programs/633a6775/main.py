import argparse
import os
import queue
import shutil
import socket
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh

from lm import Lm, shard


class Prefetcher:
    """Builds the next batches in a thread. Rows differ in length."""

    def __init__(self, rank, depth=4):
        self.queue = queue.Queue(depth)
        self.rng = torch.Generator().manual_seed(rank)
        threading.Thread(target=self._fill, name="prefetch", daemon=True).start()

    def _fill(self):
        while True:
            n = int(torch.randint(40, 96, (1,), generator=self.rng))
            first = torch.randint(0, 128, (6, 1), generator=self.rng)
            self.queue.put((first + 5 * torch.arange(n)) % 128)

    def __next__(self):
        return self.queue.get()


@torch.no_grad()
def evaluate(model, rows):
    model.eval()
    total = torch.zeros(1)
    for ids in rows:
        logits = model(ids)
        total += nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    model.train()
    dist.all_reduce(total)
    return (total / len(rows) / dist.get_world_size()).item()


def prune(root, keep=2):
    for name in sorted(os.listdir(root))[:-keep]:
        shutil.rmtree(os.path.join(root, name), ignore_errors=True)


def worker(rank, world, port, args):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    saver = dist.new_group(backend="gloo")
    model = shard(Lm(), init_device_mesh("cpu", (world,)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4)
    held_out = [(torch.randint(0, 128, (6, 1)) + 5 * torch.arange(80)) % 128 for _ in range(25)]
    batches = Prefetcher(rank)

    pending, start = None, time.time()
    for step in range(1, args.steps + 1):
        ids = next(batches)
        logits = model(ids)
        loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % args.save_every == 0:
            if pending is not None:
                pending.result()
                if rank == 0:
                    prune(args.root)
            sd_model, sd_optim = get_state_dict(model, optimizer)
            pending = dcp.async_save(
                {"model": sd_model, "optim": sd_optim},
                checkpoint_id=os.path.join(args.root, f"step{step:07d}"), process_group=saver,
            )
        if step % args.eval_every == 0:
            value = evaluate(model, held_out)
            if rank == 0:
                print(f"step {step} held-out {value:.4f}", flush=True)
        if rank == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f} {step / (time.time() - start):.2f} it/s", flush=True)
    if pending is not None:
        pending.result()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nprocs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--save-every", type=int, default=120)
    parser.add_argument("--eval-every", type=int, default=100)
    parser.add_argument("--root", default="runs/dcp")
    args = parser.parse_args()
    os.makedirs(args.root, exist_ok=True)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    watch = subprocess.Popen([sys.executable, "watch.py", args.root])
    try:
        mp.spawn(worker, args=(args.nprocs, port, args), nprocs=args.nprocs)
    finally:
        watch.terminate()


if __name__ == "__main__":
    main()
