import argparse
import multiprocessing as mp
import os
import socket
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from agent import PointEnv, Policy, discounted, rollout
from summary import EventWriter


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--actors", type=int, default=3)
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--eval-interval", type=int, default=8)
    p.add_argument("--eval-episodes", type=int, default=4)
    p.add_argument("--lr", type=float, default=3e-3)
    return p.parse_args()


def evaluate(policy, env, n_episodes):
    returns, lengths = [], []
    for _ in range(n_episodes):
        _, _, rewards = rollout(policy, env, frame_time=0.002)
        returns.append(sum(rewards))
        lengths.append(len(rewards))
    returns = torch.tensor(returns)
    return {
        "eval/mean": returns.mean(),
        "eval/median": returns.median(),
        "eval/stdev": returns.std(),
        "eval/max": returns.max(),
        "eval/min": returns.min(),
        "eval/length": sum(lengths) / len(lengths),
    }


def run_actor(rank, args, port, writer):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=args.actors)
    torch.manual_seed(7)
    policy = DDP(Policy())
    optimizer = torch.optim.Adam(policy.parameters(), lr=args.lr)
    env, eval_env = PointEnv(100 + rank), PointEnv(900 + rank)

    for step in range(1, args.steps + 1):
        obs, actions, rewards = rollout(policy.module, env)
        target = discounted(rewards)
        target = (target - target.mean()) / (target.std() + 1e-6)
        loss = -(policy(obs).log_prob(actions) * target).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        if step % args.eval_interval == 0:
            stats = evaluate(policy.module, eval_env, args.eval_episodes)
            if rank == 0:
                for tag, value in stats.items():
                    writer.add_scalar(tag, value, step)
                print(f"step {step} loss {loss.item():+.4f} R {stats['eval/mean']:.2f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


def main():
    args = parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    outdir = tempfile.mkdtemp(prefix="results-")
    writer = EventWriter(outdir)
    writer.add_hparams(vars(args))

    ctx = mp.get_context("fork")
    actors = [ctx.Process(target=run_actor, args=(r, args, port, writer)) for r in range(args.actors)]
    for a in actors:
        a.start()
    for a in actors:
        a.join()


if __name__ == "__main__":
    main()
