import argparse
import logging
import time

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from agent import ActorCritic
from gridworld import VisualGrid
from subprocess_env import SubprocessEnvManager

log = logging.getLogger("learn")


def collect(model, envs, obs, horizon):
    buf = {k: [] for k in ("obs", "act", "logp", "rew", "done", "val")}
    for _ in range(horizon):
        t_obs = torch.from_numpy(np.stack(obs))
        act, logp, val = model.act(t_obs)
        rew, done = [], []
        for i, env in enumerate(envs):
            o, r, d = env.step(act[i])
            obs[i] = env.reset() if d else o
            rew.append(r)
            done.append(float(d))
        for k, v in zip(buf, (t_obs, act, logp, torch.tensor(rew), torch.tensor(done), val)):
            buf[k].append(v)
    return {k: torch.stack(v) for k, v in buf.items()}


def advantages(buf, gamma=0.97, lam=0.95):
    adv = torch.zeros_like(buf["rew"])
    last = torch.zeros(buf["rew"].shape[1])
    next_val = buf["val"][-1]
    for t in reversed(range(len(adv))):
        alive = 1.0 - buf["done"][t]
        delta = buf["rew"][t] + gamma * next_val * alive - buf["val"][t]
        last = delta + gamma * lam * alive * last
        adv[t] = last
        next_val = buf["val"][t]
    return adv


def evaluate(model, episodes, seed, n_env=3):
    manager = SubprocessEnvManager(n_env, seed)
    obs = manager.reset()
    returns, running = [], {i: 0.0 for i in obs}
    for i, o in obs.items():
        action, _, _ = model.act(torch.from_numpy(o)[None])
        manager.queue_step(i, int(action))
    while len(returns) < episodes:
        for s in manager.get_steps():
            running[s.worker_id] += s.reward
            if s.done:
                returns.append(running[s.worker_id])
                running[s.worker_id] = 0.0
            action, _, _ = model.act(torch.from_numpy(s.obs)[None])
            manager.queue_step(s.worker_id, int(action))
    manager.close()
    return float(np.mean(returns))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--max-steps", type=int, default=100000)
    p.add_argument("--summary-freq", type=int, default=960)
    p.add_argument("--eval-freq", type=int, default=4800)
    p.add_argument("--num-envs", type=int, default=4)
    p.add_argument("--horizon", type=int, default=16)
    args = p.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s r{rank} %(levelname)s %(message)s")
    torch.manual_seed(3)
    model = ActorCritic()
    ddp = DDP(model)
    opt = torch.optim.Adam(ddp.parameters(), lr=3e-4)
    torch.manual_seed(100 + rank)

    envs = [VisualGrid(1000 * rank + i) for i in range(args.num_envs)]
    obs = [e.reset() for e in envs]
    steps, t0 = 0, time.time()
    while steps < args.max_steps:
        buf = collect(model, envs, obs, args.horizon)
        adv = advantages(buf).flatten()
        ret = adv + buf["val"].flatten()
        adv = (adv - adv.mean()) / (adv.std() + 1e-6)
        flat = {k: buf[k].flatten(0, 1) for k in ("obs", "act", "logp")}
        for idx in torch.randperm(len(adv)).chunk(2):
            logits, v = ddp(flat["obs"][idx])
            d = torch.distributions.Categorical(logits=logits)
            ratio = torch.exp(d.log_prob(flat["act"][idx]) - flat["logp"][idx])
            a = adv[idx]
            loss = -torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a).mean()
            loss = loss + 0.5 * (v - ret[idx]).pow(2).mean() - 0.01 * d.entropy().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        steps += args.num_envs * args.horizon * world

        if rank == 0 and steps % args.summary_freq == 0:
            log.info("step %d loss %.4f reward %.4f (%.0f steps/s)", steps, loss.item(),
                     buf["rew"].sum().item() / args.num_envs, steps / (time.time() - t0))
        if steps % args.eval_freq == 0:
            score = torch.zeros(1)
            if rank == 0:
                log.info("evaluating at step %d", steps)
                score[0] = evaluate(model, episodes=8, seed=77 + steps)
                log.info("eval return %.3f", score.item())
            dist.broadcast(score, src=0)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
