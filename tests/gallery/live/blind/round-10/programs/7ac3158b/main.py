import argparse
import os
import random
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh

from net import build
from sampling import sample
from text import batches
from watch import UsageLog


def clip_gradients(model, max_norm):
    by_mesh = {}
    for p in model.parameters():
        by_mesh.setdefault(p.grad.device_mesh, []).append(p.grad)
    norms = [torch.nn.utils.get_total_norm(g).full_tensor() for g in by_mesh.values()]
    total = torch.stack(norms).norm().item()
    if total > max_norm:
        for p in model.parameters():
            p.grad.mul_(max_norm / total)
    return total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--state", default="state")
    p.add_argument("--updates", type=int, default=10**6)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    os.makedirs(args.state, exist_ok=True)
    UsageLog(f"{args.state}/usage.{rank}.jsonl").start()

    torch.manual_seed(0)
    model = build(mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = batches(mesh.get_local_rank("dp"), 8, 400, seed=3)
    schedule = random.Random(21)
    gen = torch.Generator().manual_seed(100 + mesh.get_local_rank("dp"))
    t0 = time.time()
    for update in range(1, args.updates + 1):
        micro = schedule.choice((1, 1, 2, 4))
        for i in range(micro):
            model.set_requires_gradient_sync(i == micro - 1)
            ids = next(data)
            loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)
            (loss / micro).backward()
        norm = clip_gradients(model, 1.0)
        opt.step()
        opt.zero_grad()
        if update % 10 == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            if rank == 0:
                print(f"update {update} loss {mean.item() / 4:.3f} norm {norm:.2f} "
                      f"{(time.time() - t0) * 100:.0f} ms/update", flush=True)
            t0 = time.time()
        if update % 60 == 0:
            texts = sample(model, 4, 60, gen)
            if rank == 0:
                print("sample:", texts[0], flush=True)
        if update % 100 == 0:
            shard = {k: v.to_local() if hasattr(v, "to_local") else v for k, v in model.state_dict().items()}
            torch.save({"update": update, "model": shard}, f"{args.state}/shard-{rank}.pt")
            dist.barrier()
            if rank == 0:
                print(f"saved shards at update {update}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
