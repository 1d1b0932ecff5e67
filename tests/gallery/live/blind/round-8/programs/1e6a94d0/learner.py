import argparse
import os
import time

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from pool import ActorPool

SLIP = [0.35, 0.05]


def weights_of(net):
    return [p.detach().numpy().copy() for p in net.parameters()]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--actors", type=int, default=3)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--updates", type=int, default=100000)
    ap.add_argument("--bump", type=float, default=0.9)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(args.seed)
    net = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    pool = ActorPool(args.actors, SLIP[rank % len(SLIP)], args.seed + 1000 * rank)
    pool.start()
    smooth, held, t0 = 0.0, 0, time.time()
    for update in range(args.updates):
        batch, mean = pool.collect(weights_of(net), args.actors * 2, 4)
        obs = torch.from_numpy(np.stack([b[0] for b in batch]))
        act = torch.tensor([b[1] for b in batch])
        ret = torch.tensor([b[2] for b in batch], dtype=torch.float32)
        adv = (ret - ret.mean()) / (ret.std() + 1e-6)
        logp = torch.log_softmax(model(obs), -1).gather(1, act[:, None])[:, 0]
        loss = -(logp * adv).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        smooth = 0.9 * smooth + 0.1 * mean
        held = held + 1 if smooth > args.bump else 0
        if update % 20 == 0:
            print(f"[learner {rank}] update {update} level {pool.level} return {smooth:.3f} "
                  f"t={time.time() - t0:.0f}s", flush=True)
        if held >= 40:
            print(f"[learner {rank}] level {pool.level} solved, moving on", flush=True)
            pool.set_level(pool.level + 1)
            smooth, held = 0.0, 0


if __name__ == "__main__":
    main()
