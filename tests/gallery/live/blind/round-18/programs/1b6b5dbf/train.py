import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, Subset

from corpus import PackedCorpus, shard_indices
from model import CodeExpert, Trunk
from optim_utils import clip_expert_grads


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=4000)
    ap.add_argument("--batch", type=int, default=8)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world // 2, 2), mesh_dim_names=("replicate", "shard"))

    torch.manual_seed(0)
    trunk = Trunk()
    head = nn.Linear(96, 512, bias=False)
    for blk in trunk.blocks:
        fully_shard(blk, mesh=mesh)
    fully_shard(trunk, mesh=mesh)
    fully_shard(head, mesh=mesh)
    torch.manual_seed(100 + rank)
    expert = CodeExpert()

    shared = list(trunk.parameters()) + list(head.parameters())
    opt = torch.optim.AdamW(shared, lr=3e-4)
    expert_opt = torch.optim.AdamW(expert.parameters(), lr=3e-4)

    data = PackedCorpus()
    loader = DataLoader(Subset(data, shard_indices(len(data), rank, world)), batch_size=args.batch)
    step, t0 = 0, time.time()
    while step < args.steps:
        for ids, kind in loader:
            h = expert(trunk(ids[:, :-1]), kind == 1)
            loss = F.cross_entropy(head(h).flatten(0, 1), ids[:, 1:].flatten())
            loss.backward()
            gnorm = nn.utils.clip_grad_norm_(shared, 1.0)
            enorm = clip_expert_grads(expert.parameters(), 1.0)
            opt.step()
            expert_opt.step()
            opt.zero_grad(set_to_none=True)
            expert_opt.zero_grad(set_to_none=True)
            step += 1
            if step % 10 == 0:
                g = gnorm.full_tensor().item()
                if rank == 0:
                    print(f"step {step} loss {loss.item():.3f} gnorm {g:.2f} enorm {enorm:.2f} "
                          f"{(time.time() - t0) / 10 * 1e3:.0f} ms/step", flush=True)
                t0 = time.time()
            if step >= args.steps:
                break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
