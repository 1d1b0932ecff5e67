import argparse
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from actor import VOCAB, build_policy, policy_loss
from seqlen_balancing import Rollout, prepare_dynamic_batch

ROLLOUTS_PER_RANK = 8


class RolloutSampler:
    def __init__(self, rank):
        self.gen = torch.Generator().manual_seed(1000 + rank)
        self.horizon = 32

    def sample(self, iteration):
        if iteration and iteration % 40 == 0:
            self.horizon = min(self.horizon * 4, 128)
        lens = torch.randint(self.horizon // 2, self.horizon + 1, (ROLLOUTS_PER_RANK,), generator=self.gen)
        ids = torch.randint(0, VOCAB, (ROLLOUTS_PER_RANK, self.horizon), generator=self.gen)
        mask = (torch.arange(self.horizon)[None] < lens[:, None]).long()
        time.sleep(0.05 + 0.001 * int(lens.max()))
        rewards = torch.rand(ROLLOUTS_PER_RANK, generator=self.gen)
        adv = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
        return Rollout(ids, mask, adv), rewards


def update_policy(model, optimizer, batch, max_token_len):
    micro_batches = prepare_dynamic_batch(batch, max_token_len)
    losses = []
    for micro in micro_batches:
        loss = policy_loss(model, micro) * (len(micro.advantages) / len(batch.advantages))
        loss.backward()
        losses.append(loss.item())
        time.sleep(0.04)
    torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return {"loss": sum(losses), "micro": len(micro_batches)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=1000)
    parser.add_argument("--max-token-len", type=int, default=320)
    args = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(minutes=60))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    mesh = init_device_mesh("cpu", (world,), mesh_dim_names=("dp",))
    metrics_group = dist.new_group(backend="gloo", timeout=timedelta(minutes=60))
    model = build_policy(mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    sampler = RolloutSampler(rank)
    for it in range(args.iters):
        batch, rewards = sampler.sample(it)
        metrics = update_policy(model, optimizer, batch, args.max_token_len)
        metrics["reward"] = rewards.mean().item()
        gathered = [None] * world
        dist.all_gather_object(gathered, metrics, group=metrics_group)
        if rank == 0 and it % 5 == 0:
            mean = {k: sum(m[k] for m in gathered) / world for k in ("loss", "reward")}
            print(f"iter {it} horizon {sampler.horizon} loss {mean['loss']:.4f} reward {mean['reward']:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
