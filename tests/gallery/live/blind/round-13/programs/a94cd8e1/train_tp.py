import argparse
import shutil
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from blocks import LM
from shards import ShardLoader


def average_grads(params, group, size):
    grads = []
    for p in params:
        g = p.grad
        grads.append(g.to_local() if isinstance(g, DTensor) else g)
    flat = torch.cat([g.flatten() for g in grads])
    dist.all_reduce(flat, group=group)
    flat /= size
    at = 0
    for g in grads:
        g.copy_(flat[at:at + g.numel()].view_as(g))
        at += g.numel()


@torch.no_grad()
def evaluate(model, batches, group):
    total = torch.zeros(2)
    for x, y in batches:
        total += torch.tensor([F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item(), 1.0])
    dist.all_reduce(total, group=group)
    return (total[0] / total[1]).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--tp", type=int, default=2)
    ap.add_argument("--steps", type=int, default=1000000)
    args = ap.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world // args.tp, args.tp), mesh_dim_names=("dp", "tp"))
    dp, tp = mesh["dp"], mesh["tp"]
    ckpt_group, metric_group = dist.new_group(backend="gloo"), dist.new_group(backend="gloo")
    torch.manual_seed(0)
    model = LM()
    for block in model.blocks:
        parallelize_module(block.ffn, tp, {"w1": ColwiseParallel(), "w3": ColwiseParallel(), "w2": RowwiseParallel()})
    params = list(model.parameters())
    opt = torch.optim.AdamW(params, lr=1e-3, foreach=False)
    data = iter(ShardLoader(dp.get_local_rank(), dp.size(), batch=16))
    held_out = [next(data) for _ in range(12)]
    pending, t0, last = None, time.time(), time.time()
    for step in range(1, args.steps + 1):
        x, y = next(data)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        average_grads(params, dp.get_group(), dp.size())
        opt.step()
        if step % 25 == 0:
            t = loss.detach().clone()
            dist.all_reduce(t, group=metric_group)
            if rank == 0:
                print(f"step {step} loss {t.item() / world:.4f} {(time.time() - last) / 25 * 1e3:.0f} ms/step",
                      flush=True)
            last = time.time()
        if step % 200 == 0:
            ev = evaluate(model, held_out, metric_group)
            if rank == 0:
                print(f"step {step} eval {ev:.4f} {time.time() - t0:.0f}s", flush=True)
        if step % 300 == 0:
            if pending is not None:
                pending.result()
            state = {"model": get_model_state_dict(model)}
            pending = dcp.async_save(state, checkpoint_id=f"ckpt/slot{step // 300 % 2}", process_group=ckpt_group)
    if pending is not None:
        pending.result()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
