import argparse
import os
import random
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from actor import run_actor

PUBLISH_EVERY = 4


def snapshot(net):
    return {k: v.detach().numpy().copy() for k, v in net.state_dict().items()}


def learner(rank, args):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(args.port))
    torch.set_num_threads(1)
    ctx = mp.get_context("fork")
    rollouts, params = ctx.Queue(maxsize=8), ctx.Queue(maxsize=4)
    actor = ctx.Process(target=run_actor, args=(args.tasks[rank], 11 + rank, rollouts, params), daemon=True)
    actor.start()

    dist.init_process_group("gloo", rank=rank, world_size=len(args.tasks))
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 3))
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    params.put(snapshot(net))
    if rank == 0:
        print(f"training begins on tasks {args.tasks}", flush=True)

    baseline, episodes, t0 = 0.0, 0, time.time()
    for update in range(args.updates):
        obs, act, rew, ret = rollouts.get()
        obs, act, rew = torch.from_numpy(obs), torch.from_numpy(act), torch.from_numpy(rew)
        togo = rew.flip(0).cumsum(0).flip(0)
        baseline = 0.99 * baseline + 0.01 * togo.mean().item()
        loss = 0.0
        for _ in range(4):
            logp = torch.log_softmax(model(obs), -1)
            loss = -(logp.gather(1, act[:, None])[:, 0] * (togo - baseline)).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        if ret is not None:
            episodes += 1
        if update % PUBLISH_EVERY == 0:
            params.put(snapshot(net))
        if update % 20 == 0:
            print(f"[{args.tasks[rank]}] update {update} episodes {episodes} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)
    actor.terminate()
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--tasks", nargs="+", default=["balance", "corridor"])
    ap.add_argument("--updates", type=int, default=200000)
    args = ap.parse_args()
    args.port = random.randint(20000, 40000)
    mp.spawn(learner, args=(args,), nprocs=len(args.tasks))
