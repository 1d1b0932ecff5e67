import argparse
import os
import shutil
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh

from pre.data import Prefetcher, Stream
from pre.model import Net, parallelize
from pre.report import Reporter


def loss_fn(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


@torch.no_grad()
def evaluate(model, stream, batches, group):
    model.eval()
    total = torch.zeros(1)
    for _ in range(batches):
        total += loss_fn(model, *stream.draw())
    model.train()
    dist.all_reduce(total, group=group)
    return total.item() / batches / dist.get_world_size(group)


def save(model, opt, folder, step, keep=2):
    msd, osd = get_state_dict(model, opt)
    dcp.save({"model": msd, "optim": osd}, checkpoint_id=os.path.join(folder, f"step-{step}"))
    if dist.get_rank() == 0:
        have = sorted(int(d.split("-")[1]) for d in os.listdir(folder) if d.startswith("step-"))
        for s in have[:-keep]:
            shutil.rmtree(os.path.join(folder, f"step-{s}"))
    dist.barrier()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tp", type=int, default=2)
    p.add_argument("--out", required=True)
    p.add_argument("--steps", type=int, default=1000000)
    p.add_argument("--eval-every", type=int, default=50)
    p.add_argument("--save-every", type=int, default=120)
    args = p.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    world = dist.get_world_size()
    mesh = init_device_mesh("cpu", (world // args.tp, args.tp), mesh_dim_names=("dp", "tp"))
    dp_rank = mesh["dp"].get_local_rank()

    torch.manual_seed(0)
    model = parallelize(Net(), mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    train = Prefetcher(Stream(10 + dp_rank, 4, 64, 512))
    val = Stream(900 + dp_rank, 4, 64, 512)
    report = Reporter(args.out, dist.get_rank() == 0)

    t0 = time.time()
    for step in range(1, args.steps + 1):
        loss = loss_fn(model, *train.next())
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if step % 10 == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean, group=mesh["dp"].get_group())
            report.log(step=step, loss=round(mean.item() / mesh["dp"].size(), 4), ms=round((time.time() - t0) * 100))
            t0 = time.time()
        if step % args.eval_every == 0:
            report.log(step=step, val=round(evaluate(model, val, 10, mesh["dp"].get_group()), 4))
        if step % args.save_every == 0:
            t1 = time.time()
            save(model, opt, args.out, step)
            report.log(step=step, saved_s=round(time.time() - t1, 2))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
