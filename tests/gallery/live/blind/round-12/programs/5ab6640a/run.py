import argparse
import os
import queue
import random
import threading
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from actor import run_actor
from envs import PointMass


def publish(params, net):
    weights = {k: v.detach().numpy().copy() for k, v in net.state_dict().items()}
    try:
        params.put_nowait(weights)
    except queue.Full:
        pass


def next_chunk(rollouts, actor):
    while True:
        try:
            return rollouts.get(timeout=2.0)
        except queue.Empty:
            if not actor.is_alive():
                raise RuntimeError("actor is gone")


def evaluate(net, seed, episodes=6):
    env, total = PointMass(seed), 0.0
    with torch.no_grad():
        for _ in range(episodes):
            obs, done = env.reset(), False
            while not done:
                logits = net(torch.as_tensor(obs, dtype=torch.float32))
                obs, rew, done = env.step(int(logits.argmax()))
                total += rew
    out = torch.tensor([total, episodes])
    dist.all_reduce(out)
    return (out[0] / out[1]).item()


def heartbeat(stop, path):
    while not stop.wait(10.0):
        with open(path, "w") as f:
            f.write(str(time.time()))


def learner(rank, args):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(args.port))
    torch.set_num_threads(1)
    ctx = mp.get_context("fork")
    rollouts, params, stop = ctx.Queue(maxsize=16), ctx.Queue(maxsize=4), ctx.Event()
    actor = ctx.Process(target=run_actor, args=(11 + rank, rollouts, params, stop), daemon=True)
    actor.start()

    dist.init_process_group("gloo", rank=rank, world_size=args.learners)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 256), nn.Tanh(), nn.Linear(256, 3))
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    publish(params, net)
    quiet = threading.Event()
    threading.Thread(target=heartbeat, args=(quiet, f"/tmp/hb-{args.port}-{rank}"), daemon=True).start()
    if rank == 0:
        print("training begins", flush=True)

    t0 = time.time()
    for update in range(args.updates):
        obs, act, rew = (torch.from_numpy(t) for t in next_chunk(rollouts, actor))
        togo = rew.flip(0).cumsum(0).flip(0)
        togo = togo - togo.mean()
        for _ in range(8):
            logp = torch.log_softmax(model(obs), -1)
            loss = -(logp.gather(1, act[:, None])[:, 0] * togo).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        if update % 4 == 0:
            publish(params, net)
        if rank == 0 and update % 50 == 0:
            print(f"update {update} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)
        if update % 400 == 399:
            score = evaluate(net, 1000 + rank)
            if rank == 0:
                print(f"update {update} return {score:.3f}", flush=True)
                torch.save(net.state_dict(), f"/tmp/policy-{args.port}.pt")
            dist.barrier()
    stop.set()
    quiet.set()
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--learners", type=int, default=2)
    ap.add_argument("--updates", type=int, default=1000000)
    args = ap.parse_args()
    args.port = random.randint(20000, 40000)
    mp.spawn(learner, args=(args,), nprocs=args.learners)
