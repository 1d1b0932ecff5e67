import argparse
import os
import random
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP

from policy import ActorCritic
from rollout import VectorEnv, collect
from summary import SummaryWriter


def worker(rank, world, port, args):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(rank)
    env = VectorEnv(16, seed=rank)
    model = ActorCritic()
    ddp = DDP(model)
    opt = torch.optim.Adam(model.parameters(), lr=3e-4)
    writer = SummaryWriter(args.log_dir) if rank == 0 else None
    t_log, n_log = time.time(), 0
    for it in range(1, args.iterations + 1):
        t0 = time.time()
        obs, act, logp, ret, val, rew = collect(env, model, args.horizon)
        t_roll = time.time() - t0
        adv = ret - val
        adv = (adv - adv.mean()) / (adv.std() + 1e-6)
        for _ in range(args.epochs):
            pi, v = ddp(obs)
            ratio = (pi.log_prob(act) - logp).exp()
            clipped = ratio.clamp(0.8, 1.2) * adv
            loss = -torch.min(ratio * adv, clipped).mean() + 0.5 * (ret - v).pow(2).mean() - 0.01 * pi.entropy().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        n_log += 1
        if it % args.log_every == 0:
            dist.all_reduce(rew)
            if rank == 0:
                ms = (time.time() - t_log) / n_log * 1e3
                print(f"iter {it} reward {rew.item() / world:.3f} loss {loss.item():.3f} {ms:.0f} ms/iter rollout {t_roll * 1e3:.0f} ms")
                for tag, value in (("reward", rew.item() / world), ("loss", loss.item()), ("ms", ms)):
                    writer.scalar(it, tag, value)
            t_log, n_log = time.time(), 0
    if writer:
        writer.close()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--world", type=int, default=3)
    p.add_argument("--log-dir", required=True)
    p.add_argument("--iterations", type=int, default=200000)
    p.add_argument("--horizon", type=int, default=8)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--log-every", type=int, default=250)
    args = p.parse_args()
    mp.spawn(worker, args=(args.world, random.randint(20000, 40000), args), nprocs=args.world)
