import argparse
import os
import queue
import random
import socket
import tempfile
import threading
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

from generator import Generator
from policy import build_policy

BATCH = 4


def feed(prompts, packed, results, stop):
    rng = random.Random(0)
    while not stop.is_set():
        for _ in range(BATCH):
            prompts.put((rng.randrange(10**6), rng.choice([5, 10, 10, 60])))
        rows = [results.get() for _ in range(BATCH)]
        packed.put(torch.cat([torch.from_numpy(o) for o, _, _ in rows]))


def learner(rank, learners, prompts, results, pause, groups):
    model = DDP(build_policy(), process_group=groups["learners"])
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    packed = queue.Queue(maxsize=2)
    stop = threading.Event()
    if rank == 0:
        threading.Thread(target=feed, args=(prompts, packed, results, stop), daemon=True).start()
    folder = tempfile.mkdtemp()
    for step in range(1, 10**6):
        box = [packed.get() if rank == 0 else None]
        dist.broadcast_object_list(box, src=0, group=groups["learners"])
        obs = box[0].chunk(learners)[rank]
        loss = (model(obs) - obs).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.3)
        if rank == 0 and step % 5 == 0:
            print(f"[Main] step {step} loss {loss.item():.4f}", flush=True)
        if step % 50 == 0:
            if rank == 0:
                pause.clear()
                torch.save(model.module.state_dict(), f"{folder}/state_{step}.pt")
                time.sleep(8)
                print(f"[Main] saved checkpoint state at step {step}", flush=True)
                os.remove(f"{folder}/state_{step}.pt")
                pause.set()
            dist.barrier(group=groups["learners"])
        if step % 3 == 0 and rank == 0:
            for p in model.module.parameters():
                dist.broadcast(p.data, 0, group=groups["weights"])


def entry(rank, args, port, prompts, results, pause):
    world = args.learners + args.actors
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    groups = {"learners": dist.new_group(list(range(args.learners))),
              "weights": dist.new_group([0] + list(range(args.learners, world)))}
    if rank < args.learners:
        learner(rank, args.learners, prompts, results, pause, groups)
    else:
        Generator(rank, prompts, results, pause, groups["weights"]).serve()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--actors", type=int, default=2)
    ap.add_argument("--learners", type=int, default=2)
    args = ap.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    ctx = mp.get_context("spawn")
    prompts, results, pause = ctx.Queue(), ctx.Queue(), ctx.Event()
    pause.set()
    procs = [ctx.Process(target=entry, args=(r, args, port, prompts, results, pause))
             for r in range(args.actors + args.learners)]
    for p in procs:
        p.start()
    for p in procs:
        p.join()
