import argparse
import queue
import tempfile
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from ema import ShardedEMA


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))

    def forward(self, x):
        return x + self.ff(self.norm(x))


class Net(nn.Module):
    def __init__(self, dim=40, depth=3, out=10):
        super().__init__()
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.out = nn.Linear(dim, out)

    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return self.out(x)


class EMAWriter(threading.Thread):
    """Rank 0: writes exported averages in the background (slow network disk)."""

    def __init__(self, root):
        super().__init__(daemon=True, name="ema-writer")
        self.root, self.jobs = root, queue.Queue(maxsize=4)

    def run(self):
        while True:
            step, weights = self.jobs.get()
            with open(f"{self.root}/ema.pt", "wb") as f:
                for n, w in weights.items():
                    torch.save({n: w}, f)
                    time.sleep(0.6)
            print(f"  ema of step {step} written", flush=True)


def batch(gen, proj):
    x = torch.randn(16, 40, generator=gen)
    return x, (x @ proj).argmax(-1)


@torch.no_grad()
def evaluate(model, ema, gen, proj, batches=50):
    ema.swap(model)
    model.eval()
    hit = torch.zeros(2)
    for _ in range(batches):
        x, y = batch(gen, proj)
        hit += torch.tensor([(model(x).argmax(-1) == y).float().sum().item(), float(len(y))])
        time.sleep(0.1)
    dist.all_reduce(hit)
    model.reshard()
    ema.swap(model)
    model.train()
    return (hit[0] / hit[1]).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--save-every", type=int, default=60)
    p.add_argument("--eval-every", type=int, default=100)
    args = p.parse_args()
    dist.init_process_group("cpu:gloo", timeout=timedelta(minutes=30))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(2)
    mesh = init_device_mesh("cpu", (world,))
    model = Net()
    for b in model.blocks:
        fully_shard(b, mesh=mesh)
    fully_shard(model, mesh=mesh)
    ema = ShardedEMA(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    save_group = dist.new_group(backend="gloo", timeout=timedelta(minutes=30))
    root = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(root, 0)
    writer = EMAWriter(root[0]) if rank == 0 else None
    if writer:
        writer.start()
    proj = torch.randn(40, 10, generator=torch.Generator().manual_seed(0))
    gen, eval_gen = torch.Generator().manual_seed(10 + rank), torch.Generator().manual_seed(90 + rank)
    pending, step = None, 0
    while True:
        x, y = batch(gen, proj)
        loss = F.cross_entropy(model(x), y)
        time.sleep(0.08 + 0.09 * ((step + rank) % world))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        ema.update(model)
        step += 1
        if step % 20 == 0 and rank == 0:
            print(f"{time.strftime('%X')} step {step} loss {loss.item():.4f}", flush=True)
        if step % args.save_every == 0:
            if pending is not None:
                pending.result()
            pending = dcp.async_save({"model": get_model_state_dict(model)},
                                     checkpoint_id=f"{root[0]}/last-{step // args.save_every % 2}",
                                     process_group=save_group)
            weights = ema.full(model)
            if writer:
                writer.jobs.put((step, weights))
        if step % args.eval_every == 0:
            acc = evaluate(model, ema, eval_gen, proj)
            if rank == 0:
                print(f"{time.strftime('%X')} ema accuracy {acc:.3f}", flush=True)


if __name__ == "__main__":
    main()
