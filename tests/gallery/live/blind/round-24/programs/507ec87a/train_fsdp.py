import os
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn as nn
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from uploads import Uploader

EVAL_EVERY, SAVE_EVERY = 120, 100


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


def build_model(mesh, dim=32, depth=3):
    torch.manual_seed(0)
    model = nn.Sequential(*[Block(dim) for _ in range(depth)], nn.Linear(dim, 4))
    for block in model[:-1]:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


@torch.no_grad()
def evaluate(model, rank, batches=45):
    total = torch.zeros(2)
    for i in range(batches):
        x = torch.randn(4, 32)
        total += torch.tensor([model(x).pow(2).mean().item(), 1.0])
        time.sleep(0.9 if i % 10 == rank * 5 else 0.45)
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def train_step(model, opt, rank, step):
    x = torch.randn(8, 32)
    loss = (model(x) - x[:, :4]).pow(2).mean()
    loss.backward()
    time.sleep(0.3 if (step + rank) % 2 else 0.1)
    opt.step()
    opt.zero_grad()
    return loss.item()


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    saver_group = dist.new_group(backend="gloo")
    model = build_model(mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scratch = [tempfile.mkdtemp(prefix="fsdp-run-") if rank == 0 else None]
    dist.broadcast_object_list(scratch, src=0)
    uploader = Uploader(os.path.join(scratch[0], "archive")) if rank == 0 else None
    pending, pending_path = None, None

    for step in range(1, 20001):
        loss = train_step(model, opt, rank, step)
        if rank == 0 and step % 10 == 0:
            uploaded = uploader.done
            print(f"step {step} loss {loss:.4f} uploaded {uploaded}", flush=True)
        if step % SAVE_EVERY == 0:
            if pending is not None:
                pending.result()
                if uploader is not None:
                    uploader.submit(pending_path)
            weights, optim = get_state_dict(model, opt)
            pending_path = os.path.join(scratch[0], f"step-{step}")
            pending = dcp.async_save({"model": weights, "optim": optim}, checkpoint_id=pending_path,
                                     process_group=saver_group)
        if step % EVAL_EVERY == 0:
            score = evaluate(model, rank)
            if rank == 0:
                print(f"step {step} eval {score:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
