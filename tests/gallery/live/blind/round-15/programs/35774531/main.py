import argparse
import shutil
import tempfile
import threading
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from housekeeping import AsyncCheckpoints, ScheduledGC


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.att = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        h = self.n1(x)
        x = x + self.att(h, h, h, need_weights=False)[0]
        return x + self.ff(self.n2(x))


class Forecaster(nn.Module):
    def __init__(self, dim=128, depth=3):
        super().__init__()
        self.inp = nn.Linear(8, dim)
        self.blocks = nn.ModuleList(Block(dim, 4) for _ in range(depth))
        self.out = nn.Linear(dim, 8)

    def forward(self, x):
        x = self.inp(x)
        for b in self.blocks:
            x = b(x)
        return self.out(x)


def series(gen, n, t=48):
    phase = torch.rand(n, 1, 8, generator=gen) * 6.28
    freq = 0.1 + torch.rand(n, 1, 8, generator=gen)
    s = torch.sin(phase + freq * torch.arange(t + 1).view(1, -1, 1))
    return s[:, :-1], s[:, 1:]


class Watch(threading.Thread):
    """Writes the age of the last step to a file now and then."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.last, self.stop = path, time.time(), threading.Event()

    def run(self):
        while not self.stop.wait(5.0):
            with open(self.path, "w") as f:
                f.write(f"{time.time() - self.last:.1f}\n")


def evaluate(model, gen, batches=12):
    model.eval()
    total = torch.zeros(1)
    with torch.no_grad():
        for _ in range(batches):
            x, y = series(gen, 16)
            total += F.mse_loss(model(x), y)
    model.train()
    dist.all_reduce(total)
    return (total / (batches * dist.get_world_size())).item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=1200)
    p.add_argument("--save-every", type=int, default=100)
    p.add_argument("--eval-every", type=int, default=75)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("dp",))
    torch.manual_seed(0)
    model = Forecaster()
    for b in model.blocks:
        fully_shard(b, mesh=mesh)
    fully_shard(model, mesh=mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)

    folder = [tempfile.mkdtemp(prefix="forecast-") if rank == 0 else None]
    dist.broadcast_object_list(folder, src=0)
    ckpt, collect = AsyncCheckpoints(folder[0]), ScheduledGC(50)
    watch = Watch(f"{folder[0]}/age-{rank}")
    watch.start()
    gen, held_out = torch.Generator().manual_seed(10 + rank), torch.Generator().manual_seed(90 + rank)

    begin = t0 = time.time()
    step, go = 0, torch.ones(1)
    while go.item():
        step += 1
        collect(step)
        x, y = series(gen, 16)
        loss = F.mse_loss(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0).full_tensor()
        opt.step()
        opt.zero_grad()
        watch.last = time.time()
        if step % 25 == 0:
            if rank == 0:
                print(f"step {step} loss {loss.item():.4f} norm {norm.item():.3f} {(time.time() - t0) / 25:.3f} s/step", flush=True)
                t0 = time.time()
            go = torch.tensor([1.0 if time.time() - begin < args.seconds else 0.0])
            dist.broadcast(go, src=0)
        if step % args.eval_every == 0:
            val = evaluate(model, held_out)
            if rank == 0:
                print(f"step {step} held-out mse {val:.4f}", flush=True)
        if step % args.save_every == 0:
            m, o = get_state_dict(model, opt)
            ckpt.save(step, {"model": m, "opt": o})
    ckpt.wait()
    watch.stop.set()
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder[0], ignore_errors=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
