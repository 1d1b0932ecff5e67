import argparse
import atexit
import logging
import os
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.fsdp import fully_shard

from model import VOCAB, ActorCritic
from weight_sync import EngineClient, IPCWeightSync

log = logging.getLogger("train")


def start_engine(run_dir, rank, dim):
    path = os.path.join(run_dir, f"engine-{rank}.sock")
    here = os.path.dirname(os.path.abspath(__file__))
    proc = subprocess.Popen([sys.executable, os.path.join(here, "engine.py"), path, str(VOCAB), str(dim), str(rank)])
    atexit.register(proc.terminate)
    while not os.path.exists(path):
        time.sleep(0.05)
    return EngineClient(path)


def reward_fn(tokens):
    repeats = (tokens[:, 1:] == tokens[:, :-1]).float().mean(1)
    low = (tokens < VOCAB // 3).float().mean(1)
    return low - repeats


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=1000)
    parser.add_argument("--sync-every", type=int, default=5)
    parser.add_argument("--critic-warmup", type=int, default=60)
    parser.add_argument("--dim", type=int, default=64)
    args = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING, format="%(asctime)s [train] %(message)s")

    run_dir = tempfile.mkdtemp(prefix="rl-")
    torch.manual_seed(0)
    model = ActorCritic(args.dim)
    model.value_head.requires_grad_(False)
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model.value_head)
    fully_shard(model)
    optim = torch.optim.AdamW(model.parameters(), lr=3e-4)

    engine = start_engine(run_dir, rank, args.dim)
    syncer = IPCWeightSync(engine, run_dir, rank)
    syncer.sync(model)
    log.info("initial weights pushed, starting training")

    baseline = 0.0
    for it in range(1, args.iters + 1):
        if it == args.critic_warmup:
            model.value_head.requires_grad_(True)
            log.info("iter %d: training critic jointly", it)
        out = engine.call("generate", n=16, length=24)
        tokens = torch.from_numpy(out["tokens"])
        rewards = reward_fn(tokens)
        logits, values = model(tokens[:, :-1])
        logp = -F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none").view(16, -1)
        adv = rewards - baseline
        loss = -(adv[:, None] * logp).mean()
        if it >= args.critic_warmup:
            loss = loss + 0.5 * F.mse_loss(values, rewards[:, None].expand_as(values))
        loss.backward()
        torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
        optim.step()
        optim.zero_grad()
        baseline = 0.9 * baseline + 0.1 * rewards.mean().item()
        if it % 10 == 0:
            stats = torch.tensor([loss.item(), rewards.mean().item()])
            dist.all_reduce(stats)
            stats /= dist.get_world_size()
            log.info("iter %d loss %.4f reward %.4f weights v%d", it, stats[0], stats[1], out["version"])
        if it % args.sync_every == 0:
            syncer.sync(model)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
