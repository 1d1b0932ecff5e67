import logging
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from envs import CatchBatch


def train(rank, args, shared_model, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=args.num_processes)
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [worker {rank}] %(message)s", force=True)
    log = logging.getLogger("train")
    torch.manual_seed(args.seed + rank)

    model = DDP(shared_model)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    env = CatchBatch(args.num_envs, args.seed + rank)
    obs = env.observe()
    log.info("started, %d threads", torch.get_num_threads())

    for episode in range(args.max_episodes):
        t0 = time.time()
        frames, actions, rewards, dones = [], [], [], []
        for _ in range(args.num_steps):
            with torch.no_grad():
                _, logits = model.module(obs)
            action = torch.distributions.Categorical(logits=logits).sample()
            frames.append(obs)
            obs, reward, done = env.step(action)
            actions.append(action)
            rewards.append(reward)
            dones.append(done.float())
        with torch.no_grad():
            ret, _ = model.module(obs)
        returns = []
        for r, d in zip(reversed(rewards), reversed(dones)):
            ret = r + args.gamma * ret * (1 - d)
            returns.insert(0, ret)

        values, logits = model(torch.cat(frames))
        pi = torch.distributions.Categorical(logits=logits)
        adv = torch.cat(returns) - values
        loss = -(pi.log_prob(torch.cat(actions)) * adv.detach()).mean()
        loss = loss + args.value_loss_coef * adv.pow(2).mean() - args.entropy_coef * pi.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
        optimizer.step()
        if rank == 0 and episode % 10 == 0:
            log.info("episode %d loss %.4f reward %.3f (%.0f ms)", episode, loss.item(),
                     torch.stack(rewards).sum(0).mean().item(), 1000 * (time.time() - t0))
    dist.destroy_process_group()
