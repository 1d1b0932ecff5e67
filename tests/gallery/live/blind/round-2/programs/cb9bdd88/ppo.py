import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from reward_client import RewardServer


def run(rank, args):
    torch.set_num_threads(1)
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    dist.init_process_group("gloo", rank=rank, world_size=args.world_size)
    torch.manual_seed(0)
    policy = DDP(nn.Sequential(nn.Embedding(128, 24), nn.Linear(24, 128)))
    opt = torch.optim.AdamW(policy.parameters(), lr=1e-3)
    server = RewardServer(int(os.environ["REWARD_PORT"])) if rank == 0 else None
    g = torch.Generator().manual_seed(rank)
    for it in range(args.updates):
        prompts = torch.randint(0, 128, (8, 12), generator=g)
        logits = policy(prompts)
        dist_ = torch.distributions.Categorical(logits=logits)
        tokens = dist_.sample()
        gathered = [torch.empty_like(tokens) for _ in range(args.world_size)] if rank == 0 else None
        dist.gather(tokens, gathered, dst=0)
        rewards = [torch.zeros(8) for _ in range(args.world_size)]
        if rank == 0:
            scores = server.score(torch.cat(gathered).tolist())
            rewards = list(torch.tensor(scores).split(8))
        mine = torch.zeros(8)
        dist.scatter(mine, rewards if rank == 0 else None, src=0)
        loss = -(dist_.log_prob(tokens).mean(1) * (mine - mine.mean())).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.05)
        if rank == 0 and it % 10 == 0:
            print(f"update {it} reward {mine.mean().item():.3f} loss {loss.item():+.4f}", flush=True)
    if server:
        server.stop()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--world-size", type=int, default=2)
    p.add_argument("--updates", type=int, default=500)
    args = p.parse_args()
    mp.spawn(run, args=(args,), nprocs=args.world_size)
