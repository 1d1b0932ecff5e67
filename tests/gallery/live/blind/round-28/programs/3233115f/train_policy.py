import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

from advantages import AdvantageEstimator
from stages import FirstStage, LastStage

VOCAB, DIM, SEQ, BATCH, MICRO = 64, 16, 12, 8, 4


def rollout(step, dp_rank):
    """Prompts with four samples each, scored by a length-shaped reward."""
    g = torch.Generator().manual_seed(7919 * step + dp_rank)
    tokens = torch.randint(1, VOCAB, (BATCH, SEQ + 1), generator=g)
    lengths = torch.randint(3, SEQ + 1, (BATCH,), generator=g)
    rewards = (tokens % 7 == 3).float().mean(1) + 0.02 * lengths
    return tokens, lengths, rewards


def policy_loss(logits, target):
    ids, adv = target[:, :-1].long(), target[:, -1]
    logp = -F.cross_entropy(logits.transpose(1, 2), ids, reduction="none").mean(1)
    return -(logp * adv).mean()


def sync_gradients(module, group):
    n = dist.get_world_size(group)
    for p in module.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad, group=group)
            p.grad /= n


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dp", type=int, default=2)
    ap.add_argument("--pp", type=int, default=2)
    ap.add_argument("--steps", type=int, default=20000)
    ap.add_argument("--whiten-after", type=int, default=40)
    args = ap.parse_args()

    dist.init_process_group("gloo", timeout=timedelta(hours=1))
    mesh = init_device_mesh("cpu", (args.pp, args.dp), mesh_dim_names=("pp", "dp"))
    pp, dp = mesh.get_local_rank("pp"), mesh.get_local_rank("dp")
    torch.manual_seed(3 + pp)
    module = FirstStage(VOCAB, DIM) if pp == 0 else LastStage(VOCAB, DIM)
    stage = PipelineStage(module, pp, args.pp, torch.device("cpu"), group=mesh.get_group("pp"))
    schedule = Schedule1F1B(stage, MICRO, loss_fn=policy_loss)
    opt = torch.optim.AdamW(module.parameters(), lr=3e-4)
    estimate = AdvantageEstimator(group_size=4, whiten_after=args.whiten_after)

    for step in range(args.steps):
        tokens, lengths, rewards = rollout(step, dp)
        opt.zero_grad()
        if pp == 0:
            schedule.step(tokens[:, :-1])
        else:
            adv = estimate(step, rewards, lengths)
            target = torch.cat([tokens[:, 1:].float(), adv.unsqueeze(1)], 1)
            losses = []
            schedule.step(target=target, losses=losses)
        sync_gradients(module, mesh.get_group("dp"))
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        opt.step()
        if pp == args.pp - 1 and dp == 0 and step % 5 == 0:
            print(f"step {step} policy loss {torch.stack(losses).mean():.4f} "
                  f"reward {rewards.mean():.3f}", flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
