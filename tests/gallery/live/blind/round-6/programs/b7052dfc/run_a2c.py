import argparse
import time
from functools import partial

import torch
import torch.distributed as dist

from rl.a2c import Policy, Rollout
from rl.envs import WindyPole
from rl.vec_env import SubprocVecEnv


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--num-envs", type=int, default=4)
    p.add_argument("--updates", type=int, default=1000)
    p.add_argument("--n-steps", type=int, default=8)
    a = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    env = SubprocVecEnv([partial(WindyPole, 3 * rank + i) for i in range(a.num_envs)])
    net = Policy()
    ddp = torch.nn.parallel.DistributedDataParallel(net)
    opt = torch.optim.Adam(ddp.parameters(), 7e-4)
    roll = Rollout(env, net, a.n_steps)
    for u in range(1, a.updates + 1):
        obs, act, ret = roll.collect()
        logits, v = ddp(obs.flatten(0, 1))
        logp = torch.log_softmax(logits, -1).gather(1, act.flatten()[:, None])[:, 0]
        adv = ret.flatten() - v
        loss = -(logp * adv.detach()).mean() + 0.5 * adv.square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.08)
        if rank == 0 and u % 10 == 0:
            print(f"update {u} mean return {ret.mean().item():.2f} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
