import argparse
import os
import socket
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

from config import RunConfig
from policy import Policy, rewards, token_losses
from sampler import Sampler


def push_weights(policy, rank, transfer_group):
    for p in policy.parameters():
        full = p.full_tensor()
        if rank == 0:
            dist.broadcast(full.detach(), src=0, group=transfer_group)


def train(cfg, rank, train_group, transfer_group):
    torch.manual_seed(0)
    policy = Policy(cfg.vocab, cfg.dim)
    mesh = DeviceMesh.from_group(train_group, "cpu")
    fully_shard(policy.body, mesh=mesh)
    fully_shard(policy, mesh=mesh)
    opt = torch.optim.AdamW(policy.parameters(), lr=2e-3)
    seq = torch.empty(cfg.prompts, cfg.length + 1, dtype=torch.long)

    for step in range(cfg.steps):
        opt.zero_grad()
        n = cfg.microbatches(step)
        for micro in range(n):
            dist.recv(seq, src=cfg.sampler_rank)
            adv = rewards(seq)
            adv = adv - adv.mean()
            policy.set_requires_gradient_sync(micro == n - 1)
            loss = (token_losses(policy, seq).mean(1) * adv).mean() / n
            loss.backward()
            time.sleep(0.06)
        opt.step()
        if (step + 1) % cfg.sync_every == 0:
            push_weights(policy, rank, transfer_group)
        if rank == 0 and step % 4 == 0:
            print(f"step {step} micro {n} reward {rewards(seq).mean():.3f} loss {loss.item():+.4f}")


def worker(rank, cfg, port):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=cfg.trainers + 1, timeout=timedelta(hours=1))
    train_group = dist.new_group(list(range(cfg.trainers)))
    transfer_group = dist.new_group([0, cfg.sampler_rank])
    if rank == cfg.sampler_rank:
        Sampler(cfg, transfer_group).serve()
    else:
        train(cfg, rank, train_group, transfer_group)
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--trainers", type=int, default=3)
    cfg = RunConfig(trainers=ap.parse_args().trainers)
    mp.spawn(worker, args=(cfg, free_port()), nprocs=cfg.trainers + 1)
