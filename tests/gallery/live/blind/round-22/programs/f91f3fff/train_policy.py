import argparse
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from policy import PolicyModel, policy_loss, sample_rollouts
from weight_sync import RolloutPublisher


def build(mesh):
    torch.manual_seed(0)
    model = PolicyModel()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--publish-every", type=int, default=25)
    parser.add_argument("--steps", type=int, default=100000)
    parser.add_argument("--accum", type=int, default=2)
    args = parser.parse_args()

    dist.init_process_group("gloo", timeout=timedelta(minutes=40))
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("dp",))
    model = build(mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    publisher = RolloutPublisher(rank)
    generator = torch.Generator().manual_seed(1234 + rank)

    for step in range(1, args.steps + 1):
        for micro in range(args.accum):
            model.set_requires_gradient_sync(micro == args.accum - 1)
            tokens, advantages = sample_rollouts(generator)
            loss = policy_loss(model(tokens), tokens, advantages) / args.accum
            loss.backward()
            time.sleep(0.08)
        grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if isinstance(grad_norm, torch.distributed.tensor.DTensor):
            grad_norm = grad_norm.full_tensor()
        optimizer.step()
        optimizer.zero_grad()
        if step % 5 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f} grad_norm {grad_norm.item():.3f}", flush=True)
        if step % args.publish_every == 0:
            publisher.publish(model)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
