import argparse
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from async_ckpt import AsyncCheckpointer
from policy_net import ActionTransformer, shard


def rollouts(model, generator, episodes):
    total = 0.0
    with torch.no_grad():
        for _ in range(episodes):
            obs = torch.randn(2, 10, 24, generator=generator)
            for _ in range(4):
                total += model(obs).pow(2).mean().item()
                time.sleep(0.12)
    return total / episodes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--replicate", type=int, default=2)
    parser.add_argument("--accum", type=int, default=4)
    parser.add_argument("--save-every", type=int, default=30)
    parser.add_argument("--eval-every", type=int, default=40)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (args.replicate, world // args.replicate), mesh_dim_names=("replicate", "shard"))
    torch.manual_seed(0)
    model = shard(ActionTransformer(), mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    checkpointer = AsyncCheckpointer()
    generator = torch.Generator().manual_seed(50 + rank)

    for step in range(1, 1000000):
        for micro in range(args.accum):
            model.set_requires_gradient_sync(micro == args.accum - 1)
            obs = torch.randn(4, 10, 24, generator=generator)
            loss = (model(obs) - obs[:, :8, :6]).pow(2).mean() / args.accum
            loss.backward()
            time.sleep(0.06)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0 and step % 5 == 0:
            print(f"step {step} loss {loss.item() * args.accum:.4f}", flush=True)
        if step % args.save_every == 0:
            checkpointer.save(model, optimizer, step)
        if step % args.eval_every == 0:
            value = rollouts(model, generator, episodes=20)
            if rank == 0:
                print(f"step {step} rollout score {value:.4f}", flush=True)


if __name__ == "__main__":
    main()
