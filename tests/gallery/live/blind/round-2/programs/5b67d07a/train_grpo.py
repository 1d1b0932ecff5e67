import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from rollout import RolloutPool

torch.set_num_threads(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--iterations", type=int, default=100)
    p.add_argument("--group-size", type=int, default=6)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    policy = DDP(nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4)))
    opt = torch.optim.Adam(policy.parameters(), lr=1e-3)
    pool = RolloutPool(workers=2, seed=101 * rank + 17)
    for it in range(args.iterations):
        weights = [p.detach().numpy() for p in policy.module.parameters()]
        trajs = pool.collect(weights, args.group_size)
        obs = torch.tensor([o for t in trajs for o in t["obs"]], dtype=torch.float32)
        act = torch.tensor([a for t in trajs for a in t["act"]])
        ret = torch.tensor([t["ret"] for t in trajs for _ in t["act"]], dtype=torch.float32)
        adv = (ret - ret.mean()) / (ret.std() + 1e-6)
        logp = policy(obs).log_softmax(-1).gather(1, act[:, None]).squeeze(1)
        loss = -(logp * adv).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        stat = torch.tensor([ret.mean().item()])
        dist.all_reduce(stat)
        if rank == 0:
            print(f"iter {it} reward {stat.item() / dist.get_world_size():.3f} loss {loss.item():.4f}", flush=True)
    pool.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
